/** Which methods an address has, for requests with another one. */

/** The routes of an API, as they are registered. */
export class Routes {
  /** Methods by pattern, such as `/orders/:id`. */
  readonly #methods = new Map<string, Set<string>>();

  add(pattern: string, methods: string | readonly string[]): void {
    const known = this.#methods.get(pattern) ?? new Set();
    this.#methods.set(pattern, new Set([...known, ...[methods].flat()]));
  }

  /** Returns the methods of the address, in the order of the alphabet; none if there is no such address. */
  at(url: string): string[] {
    const path = url.replace(/[?#].*$/s, "");
    const found = [...this.#methods].filter(([pattern]) => fits(pattern, path));
    return [...new Set(found.flatMap(([, methods]) => [...methods]))].toSorted();
  }
}

/** A segment that begins with a colon stands for any text. */
function fits(pattern: string, path: string): boolean {
  const [wanted, given] = [pattern.split("/"), path.split("/")];
  return (
    wanted.length === given.length &&
    wanted.every((segment, index) => (segment.startsWith(":") ? given[index] !== "" : segment === given[index]))
  );
}
