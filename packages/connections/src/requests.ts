/** Which requests a port carries out at once, with a share for each client: a request may wait for long, and holds memory. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ConnectionBudget } from "./budget.ts";
import type { Seat } from "./seat.ts";
import { Shares } from "./shares.ts";

/** What a client is told that gets no place. */
export const TOO_MANY_REQUESTS =
  "Too many requests of this token or address are under way, or this one was sent before the reply to the one before. Wait for some of them to end, and try again.";

export class RequestPlaces {
  readonly #budget: Pick<ConnectionBudget, "seatOf">;
  readonly #shares: Shares;
  /** The newest reply of each connection. */
  readonly #newest = new WeakMap<Seat, ServerResponse>();

  /** Of one port, whose connections `budget` holds. */
  constructor(budget: Pick<ConnectionBudget, "seatOf" | "limits">) {
    this.#budget = budget;
    this.#shares = new Shares(budget.limits.requests);
  }

  /**
   * Gives a request its place until its reply is over. Returns false if its client has as many as it leaves to others, or
   * sends a second one before the reply to the first: that one would learn only later that its connection is gone.
   *
   * @param who who shares: by default the client's address. A token, where one is known: a crowd behind one address is not
   * one client then, and a client with many addresses is
   */
  take({ socket }: Pick<IncomingMessage, "socket">, reply: ServerResponse, who?: string): boolean {
    const seat = this.#budget.seatOf(socket);
    // The platform itself handed it over.
    if (seat === undefined) return true;
    const key = who ?? seat.client.key;
    // Not until its `close`, which over TLS comes after the client has read it, and has sent its next request.
    const isBusy = this.#newest.get(seat)?.writableEnded === false;
    if (isBusy || !this.#shares.take(key)) return false;
    this.#newest.set(seat, reply);
    reply.once("close", () => this.#shares.give(key));
    return true;
  }
}
