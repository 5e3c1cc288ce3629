import { Socket } from "node:net";
import pg from "pg";
import { loginOf, POOL_SIZE, type PostgresSettings, QUERY_TIMEOUT_MS, serverLimits } from "./settings.ts";

const IDLE_MS = 30_000;
const KEEP_ALIVE_MS = 5000;
/** The connections of a dropped pool get this many query timeouts to finish their work. */
const LINGER = 5;

/** A pool of connections that are trusted, or dropped, together. */
export class Generation {
  readonly #pool: pg.Pool;
  readonly #sockets = new Set<Socket>();
  readonly #waiting = new Set<() => void>();
  readonly #lingerMs: number;
  #ended: Promise<void> | undefined;

  constructor(settings: PostgresSettings, onIdleError: (error: unknown) => void) {
    const { queryTimeoutMs = QUERY_TIMEOUT_MS } = settings;
    this.#lingerMs = LINGER * queryTimeoutMs;
    this.#pool = new pg.Pool({
      ...loginOf(settings),
      max: settings.poolSize ?? POOL_SIZE,
      connectionTimeoutMillis: queryTimeoutMs,
      query_timeout: queryTimeoutMs,
      ...serverLimits(queryTimeoutMs),
      idleTimeoutMillis: IDLE_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      application_name: "orders",
      stream: () => this.#socket(),
    });
    // A connection may also die between two statements while it is lent. Without a listener the process would end.
    this.#pool.on("connect", (client) => client.on("error", () => {}));
    this.#pool.on("error", onIdleError);
  }

  /** Returns a connection. Undefined when the generation was dropped meanwhile; then nothing was sent. */
  connect(): Promise<pg.PoolClient | undefined> {
    if (this.#ended) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      const giveUp = () => resolve(undefined);
      this.#waiting.add(giveUp);
      this.#pool.connect().then(
        (client) => (this.#waiting.delete(giveUp) ? resolve(client) : client.release()),
        (error: Error) => {
          this.#waiting.delete(giveUp);
          reject(error);
        },
      );
    });
  }

  /** Releases waiting callers, and ends the connections in the background: idle ones now, others when they are free. */
  drop(): Promise<void> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  async #end(): Promise<void> {
    for (const giveUp of this.#waiting) giveUp();
    this.#waiting.clear();
    const ended = this.#pool.end();
    // The other side never closes a connection that leads nowhere, so it has to be destroyed.
    const timer = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, this.#lingerMs);
    timer.unref();
    await ended;
    if (this.#sockets.size === 0) clearTimeout(timer);
  }

  #socket(): Socket {
    const socket = new Socket();
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    return socket;
  }
}
