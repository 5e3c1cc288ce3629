/** Helpers for messages that people read. */

/** Returns the message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Capitalizes the first letter, for the beginning of a sentence. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Removes the period at the end, for a sentence that becomes part of another one. */
export function withoutPeriod(text: string): string {
  return text.replace(/\.$/, "");
}
