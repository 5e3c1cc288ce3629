/** Queries as clients write them. */

/** Go's clients write every flag, and some write 1. */
export function flag(value: unknown): boolean {
  return value === true || value === "true" || value === "1";
}

/** A path with a query, if there is one. */
export function asking(at: string, search: URLSearchParams): string {
  return search.size === 0 ? at : `${at}?${search.toString()}`;
}

/** The values of a parameter that may be repeated. */
export function textsOf(value: unknown): string[] {
  return [value ?? []].flat().map(String);
}
