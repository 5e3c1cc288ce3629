/** What one proxy has open on one machine. */

export class MachineLoad {
  /** Open requests of each client connection. */
  readonly #connections = new Map<object, number>();
  #requests = 0;
  #idleSince: number;

  constructor(now: number) {
    this.#idleSince = now;
  }

  get requests(): number {
    return this.#requests;
  }

  get connections(): number {
    return this.#connections.size;
  }

  /** Milliseconds since anything was open; 0 while something is. */
  idleMs(now: number): number {
    return this.#requests > 0 ? 0 : now - this.#idleSince;
  }

  open(connection: object): void {
    this.#requests += 1;
    this.#connections.set(connection, (this.#connections.get(connection) ?? 0) + 1);
  }

  close(connection: object, now: number): void {
    this.#requests -= 1;
    const left = (this.#connections.get(connection) ?? 1) - 1;
    if (left === 0) this.#connections.delete(connection);
    else this.#connections.set(connection, left);
    if (this.#requests === 0) this.#idleSince = now;
  }

  /** Counts as busy now: whoever woke a machine wants to use it. */
  touch(now: number): void {
    this.#idleSince = now;
  }
}
