/** What connects two parts that need each other: one is constructed with the port, and the other fills it. */

/**
 * @example
 * const machines = new Port<Machines>("the machines");
 * const volumes = new Volumes({ whilePaused: (id, work) => machines.filled.whilePaused(id, work) });
 * machines.fill(new Machines({ volumes }));
 */
export class Port<T> {
  readonly #name: string;
  #value: T | undefined;

  /** @param name what fills the port, for the error if it is used too early */
  constructor(name: string) {
    this.#name = name;
  }

  fill(value: T): void {
    this.#value = value;
  }

  /** What the port was filled with. Throws if that has not happened yet. */
  get filled(): T {
    if (this.#value === undefined) throw new Error(`The platform used ${this.#name} before it was ready.`);
    return this.#value;
  }
}
