import { test } from "vitest";
import { withstand } from "./fuzz.ts";

/** Each has a platform of its own, so that what the earlier ones made does not pile up. */
const ROUNDS = Array.from({ length: 10 }, (_, round) => round + 1);

test.each(ROUNDS)("10,000 wild requests, round %i", { timeout: 1_800_000 }, (round) => withstand(10_000, round, 20));
