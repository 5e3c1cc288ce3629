/** What all exchanges and connections of one proxy share. */
import type { AccessEntry, LeaseProvider } from "../contract.ts";
import type { Limits } from "./limits.ts";
import type { ConnectionPool } from "./connection-pool.ts";
import type { Trust } from "./trust.ts";

export interface Engine {
  readonly leases: LeaseProvider;
  readonly limits: Readonly<Limits>;
  readonly pool: ConnectionPool;
  readonly trust: Trust;
  /**
   * Requests that are under way. Only counted: a Set that changes with every request keeps those that have ended
   * alive until the next full garbage collection, as each of its outgrown tables points to the next.
   */
  requests: number;
  /** Client connections, those in a TLS handshake not among them. */
  readonly connections: Set<ClientConnectionHandle>;
  /** No further requests are wanted on the connections there are. */
  closing: boolean;
  onAccess(entry: AccessEntry): void;
  /** A fault of ours or of the LeaseProvider's, which the client was not told about. */
  onFault(error: unknown): void;
}

export interface ClientConnectionHandle {
  /**
   * Looks at the times of the connection and of the requests on it; called every `sweepMs`.
   *
   * @param now on the clock of `performance.now()`
   */
  tick(now: number): void;
  /** Ends the connection as soon as nothing is under way on it. */
  finish(): void;
  /** Ends at once what is under way on it. */
  cutRequests(): void;
}
