/** The sessions of all clients: each belongs to one token, ends when nobody uses it, and makes room when there are too many. */
import { createHash, timingSafeEqual } from "node:crypto";
import { MOST_CALLS, MOST_SESSIONS, MOST_SESSIONS_OF_TOKEN, SESSION_IDLE_MS } from "../limits.ts";

/** What a session speaks through. */
export interface Ends {
  close(): Promise<void>;
}

/** One client's session. */
export interface Session<Transport extends Ends> {
  transport: Transport;
  /** The hash of its token: no token is kept here. */
  owner: Buffer;
  /** How many requests are under way. */
  calls: number;
  /** When the last one began or ended, in milliseconds since 1970. */
  usedAt: number;
}

interface SessionsOptions {
  /** Called with what ended a session badly. */
  onFault(error: unknown): void;
  now?(): number;
}

/** Holds them by their ids. */
export class Sessions<Transport extends Ends> {
  readonly #byId = new Map<string, Session<Transport>>();
  readonly #options: SessionsOptions;
  readonly #timer: NodeJS.Timeout;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.expire(), SESSION_IDLE_MS / 10);
    this.#timer.unref();
  }

  get size(): number {
    return this.#byId.size;
  }

  /** Makes room for one more of this token, and returns whether there is: not if other tokens have taken it all. */
  makeRoom(token: string): boolean {
    const owner = hashOf(token);
    const own = [...this.#byId].filter(([, session]) => session.owner.equals(owner));
    if (own.length >= MOST_SESSIONS_OF_TOKEN) {
      const [oldest] = own.toSorted(([, one], [, other]) => rank(one) - rank(other));
      if (oldest !== undefined) this.end(oldest[0]);
    }
    return this.#byId.size < MOST_SESSIONS;
  }

  /** Keeps a session; or ends it, if others have taken the room since it was made. */
  add(id: string, transport: Transport, token: string): void {
    const room = this.makeRoom(token);
    this.#byId.set(id, { transport, owner: hashOf(token), calls: 0, usedAt: this.#now() });
    if (!room) this.end(id);
  }

  /** Returns the session if it belongs to this token: the id of another one's is as unknown as any. */
  find(id: string, token: string): Session<Transport> | undefined {
    const session = this.#byId.get(id);
    return session !== undefined && timingSafeEqual(session.owner, hashOf(token)) ? session : undefined;
  }

  /** Counts a call, and returns what to do when it is over. Undefined if too many are under way. */
  begin(session: Session<Transport>): (() => void) | undefined {
    if (session.calls >= MOST_CALLS) return undefined;
    session.calls += 1;
    session.usedAt = this.#now();
    return () => {
      session.calls -= 1;
      session.usedAt = this.#now();
    };
  }

  /** Ends one. */
  end(id: string): void {
    const session = this.#byId.get(id);
    this.#byId.delete(id);
    session?.transport.close().catch((error: unknown) => this.#options.onFault(error));
  }

  /** Ends those that nobody has used for long. */
  expire(): void {
    const before = this.#now() - SESSION_IDLE_MS;
    for (const [id, { calls, usedAt }] of this.#byId) if (calls === 0 && usedAt < before) this.end(id);
  }

  /** Ends all. */
  close(): void {
    clearInterval(this.#timer);
    for (const id of this.#byId.keys()) this.end(id);
  }

  #now(): number {
    return this.#options.now?.() ?? Date.now();
  }
}

/** Idle ones make room first, those that were idle longest before others. */
function rank({ calls, usedAt }: Session<Ends>): number {
  return calls > 0 ? Number.MAX_SAFE_INTEGER - 1 : usedAt;
}

function hashOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
