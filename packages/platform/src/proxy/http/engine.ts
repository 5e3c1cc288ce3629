/** What all exchanges and connections of one proxy share. */
import type { AccessEntry, Director } from "../contract.ts";
import type { Limits } from "./limits.ts";
import type { Pool } from "./pool.ts";
import type { Trust } from "./trust.ts";

export interface Engine {
  readonly director: Director;
  readonly limits: Readonly<Limits>;
  readonly pool: Pool;
  readonly trust: Trust;
  /** Requests that are under way. */
  readonly exchanges: Set<Timed>;
  /** Client connections, those in a TLS handshake not among them. */
  readonly connections: Set<ClientConnectionHandle>;
  /** No further requests are wanted on the connections there are. */
  closing: boolean;
  onAccess(entry: AccessEntry): void;
  /** A fault of ours or of the Director's, which the client was not told about. */
  onFault(error: unknown): void;
}

/** Whatever has times to keep; looked at every `sweepMs`. */
export interface Timed {
  /** @param now on the clock of `performance.now()` */
  tick(now: number): void;
  /** Ends it at once. */
  cut(): void;
}

export interface ClientConnectionHandle extends Timed {
  /** Ends the connection as soon as nothing is under way on it. */
  finish(): void;
}
