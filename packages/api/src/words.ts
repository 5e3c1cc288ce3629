/** Words in a query. */

/** Splits values that are repeated, separated by commas, or both. */
export function wordsIn(query: string | string[] | undefined): string[] {
  const parts = [query ?? []].flat().flatMap((part) => part.split(","));
  return parts.map((word) => word.trim()).filter((word) => word !== "");
}
