/** How much the hostile guest sends. */
import { longOr } from "../../../platform/test/helpers/long.ts";

export const FRAMES = longOr(10_000_000, 40_000);
/** Another seed is another attack; a failure names the one that it had. */
export const SEED = Number(process.env["HIBERNAUT_FUZZ_SEED"] ?? 18);
/** What a heap varies by between two collections, with a few hundred streams open. */
export const GROWTH_BYTES = 24 * 1024 * 1024;
/** Only a hang reaches it: two busy cores take 20,000 frames a second. */
export const LIMIT_MS = longOr(3_600_000, 120_000);
