/** The requests that one proxy has open on one machine. */

export class OpenRequests {
  /**
   * Open requests of each client connection that ever had one. Nothing is removed: a Map that changes with every request
   * burdens the garbage collector, and these entries disappear with their connections.
   */
  readonly #open = new WeakMap<object, { requests: number }>();
  #connections = 0;
  #requests = 0;
  #idleSince: number;

  constructor(now: number) {
    this.#idleSince = now;
  }

  get requests(): number {
    return this.#requests;
  }

  get connections(): number {
    return this.#connections;
  }

  /** Returns the milliseconds since anything was open; 0 while something is. */
  idleMs(now: number): number {
    return this.#requests > 0 ? 0 : now - this.#idleSince;
  }

  add(connection: object): void {
    this.#requests += 1;
    const open = this.#of(connection);
    open.requests += 1;
    if (open.requests === 1) this.#connections += 1;
  }

  remove(connection: object, now: number): void {
    this.#requests -= 1;
    const open = this.#of(connection);
    open.requests -= 1;
    if (open.requests === 0) this.#connections -= 1;
    if (this.#requests === 0) this.#idleSince = now;
  }

  /** Counts as used now: a machine that just woke is about to be used. */
  touch(now: number): void {
    this.#idleSince = now;
  }

  #of(connection: object): { requests: number } {
    const known = this.#open.get(connection);
    if (known !== undefined) return known;
    const open = { requests: 0 };
    this.#open.set(connection, open);
    return open;
  }
}
