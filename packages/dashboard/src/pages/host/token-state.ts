/** Whether a token is valid, in words. Pure. */
import type { Token } from "@hibernaut/client/browser";
import { duration } from "../../format.ts";

/** Returns what a token is at a time, in milliseconds since 1970. */
export function tokenState(
  {
    revoked_at: revoked,
    expires_at: expires,
    replaced_by: next,
  }: Pick<Token, "revoked_at" | "expires_at" | "replaced_by">,
  now: number,
): { valid: boolean; words: string } {
  if (revoked !== null) return { valid: false, words: "revoked" };
  if (expires === null) return { valid: true, words: "valid" };
  const left = Date.parse(expires) - now;
  if (left <= 0) return { valid: false, words: next === null ? "expired" : "replaced" };
  const words = `${duration(left)} left`;
  return { valid: true, words: next === null ? words : `replaced, ${words}` };
}
