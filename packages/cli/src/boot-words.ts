/** How a machine came up, in a word. */
import type { Machine } from "@hibernaut/client";

type LastBoot = NonNullable<Machine["last_boot"]>;

const WORDS: Record<LastBoot["kind"], string> = { warm: "resumed warm", resume: "resumed", cold: "cold" };

/** `resumed`, `resumed warm` or `cold`. */
export function bootWord({ kind }: Pick<LastBoot, "kind">): string {
  return WORDS[kind];
}
