/** Which requests a port carries out at once, with a share for each client: a request may wait for long, and holds memory. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ConnectionBudget } from "./budget.ts";
import type { Seat } from "./seat.ts";
import { Shares } from "./shares.ts";

/** What a client is told that gets no place. */
export const TOO_MANY_REQUESTS =
  "Too many requests of this address are under way, or this one was sent before the reply to the one before. Wait for some of them to end, and try again.";

export class RequestPlaces {
  readonly #budget: Pick<ConnectionBudget, "seatOf">;
  readonly #shares: Shares;
  /** Connections with a request under way. */
  readonly #busy = new WeakSet<Seat>();

  /** Of one port, whose connections `budget` holds. */
  constructor(budget: Pick<ConnectionBudget, "seatOf" | "limits">) {
    this.#budget = budget;
    this.#shares = new Shares(budget.limits.requests);
  }

  /**
   * Gives a request its place until its reply is over. Returns false if its client has as many as it leaves to others, or
   * sends a second one before the reply to the first: that one would learn only later that its connection is gone.
   */
  take({ socket }: Pick<IncomingMessage, "socket">, reply: ServerResponse): boolean {
    const seat = this.#budget.seatOf(socket);
    // The platform itself handed it over.
    if (seat === undefined) return true;
    const { key } = seat.client;
    if (this.#busy.has(seat) || !this.#shares.take(key)) return false;
    this.#busy.add(seat);
    reply.once("close", () => {
      this.#busy.delete(seat);
      this.#shares.give(key);
    });
    return true;
  }
}
