/**
 * The connections of all ports of a process, within its limit of file descriptors. A client that would be one too many
 * takes the place of a connection that waits, its own before others'; only without one is it refused.
 *
 * No limit would do that is the same for every client: it would be too small for one that is alone, or leave nothing once a
 * few are hostile. So a client may have as many connections as are still free for others: one alone gets half, and n
 * busy ones leave a part of n + 1.
 */
import type { Socket } from "node:net";
import { type ConnectionLimits, clientKey, type Held, placeFor, type Refused } from "./limits.ts";
import { type Client, Link, Seat } from "./seat.ts";
import { Shares } from "./shares.ts";

interface BudgetCounts extends Held {
  /** Since the process started. */
  shed: number;
  refused: Record<Refused, number>;
}

interface Arriving {
  app?: string | undefined;
  many?: boolean;
  tls?: boolean;
}

/** The key of what stands for many clients. */
const MANY = "*";

export class ConnectionBudget {
  readonly limits: ConnectionLimits;
  /** The connections to machines, by app. */
  readonly machines: Shares;
  readonly counts: BudgetCounts = { open: 0, idle: 0, shed: 0, refused: { full: 0, address: 0 } };
  readonly #clients = new Map<string, Client>();
  readonly #waiting = new Link();
  /** By socket. Each leaves when it closes: a weak map of thousands would cost every collection of garbage time. */
  readonly #seats = new Map<object, Seat>();
  /** Of connections that get TLS, which is another object with the same ends. */
  readonly #byEnds = new Map<string, Seat>();

  constructor(limits: ConnectionLimits) {
    this.limits = limits;
    this.machines = new Shares(limits.machines);
  }

  /**
   * Finds a place for a connection that was just accepted, or closes it and returns undefined.
   *
   * @param app the app whose machine made it: the machines of one app are one client, as it may have any number
   * @param many whether many clients use the connection, or its client will be named later
   * @param tls whether its TLS is to be found by {@link seatOf}
   */
  admit(socket: Socket, { app, many = false, tls = false }: Arriving = {}): Seat | undefined {
    const own = app === undefined ? clientKey(socket.remoteAddress ?? "") : `app ${app}`;
    const client = this.#client(many ? MANY : own);
    if (!this.#makeRoom(client)) {
      socket.on("error", () => {}).resetAndDestroy();
      return undefined;
    }
    const seat = new Seat(this, socket, client);
    this.#seats.set(socket, seat);
    this.#sit(seat);
    const ends = tls ? endsOf(socket) : undefined;
    if (ends !== undefined) this.#byEnds.set(ends, seat);
    socket.once("close", () => {
      if (ends !== undefined) this.#byEnds.delete(ends);
      this.#leave(seat);
    });
    return seat;
  }

  /** Returns the seat of a connection, or of the connection below its TLS. Undefined if it was refused. */
  seatOf(socket: Socket): Seat | undefined {
    return this.#seats.get(socket) ?? (this.#byEnds.size > 0 ? this.#byEnds.get(endsOf(socket)) : undefined);
  }

  /** For {@link Seat}. */
  began(seat: Seat): void {
    seat.idle = false;
    this.counts.idle -= 1;
    seat.client.idle -= 1;
    seat.amongAll.leave();
    seat.amongOwn.leave();
  }

  /** For {@link Seat}. */
  rests(seat: Seat): void {
    if (seat.socket.destroyed) return;
    seat.idle = true;
    this.counts.idle += 1;
    seat.client.idle += 1;
    this.#waiting.append(seat.amongAll);
    seat.client.waiting.append(seat.amongOwn);
  }

  /** For {@link Seat}. */
  rename(seat: Seat, address: string): boolean {
    if (seat.socket.destroyed) return false;
    const client = this.#client(clientKey(address));
    // It gives its place back first: it does not need a second one.
    this.#leave(seat);
    if (!this.#makeRoom(client)) {
      seat.socket.destroy();
      return false;
    }
    seat.address = address;
    seat.client = client;
    this.#seats.set(seat.socket, seat);
    this.#sit(seat);
    return true;
  }

  #makeRoom(client: Client): boolean {
    const place = placeFor(this.counts, client, this.limits, client.key === MANY);
    if (place === "free") return true;
    const eldest = place === "own" ? client.waiting.eldest : place === "any" ? this.#waiting.eldest : undefined;
    if (eldest === undefined) {
      if (place === "full" || place === "address") this.counts.refused[place] += 1;
      return false;
    }
    this.counts.shed += 1;
    this.#leave(eldest);
    eldest.socket.destroy();
    return true;
  }

  #sit(seat: Seat): void {
    const { client } = seat;
    this.#clients.set(client.key, client);
    this.counts.open += 1;
    client.open += 1;
    this.rests(seat);
  }

  #leave(seat: Seat): void {
    if (!this.#seats.delete(seat.socket)) return;
    seat.begin();
    this.counts.open -= 1;
    seat.client.open -= 1;
    // Clients come and go, and must leave nothing behind.
    if (seat.client.open === 0) this.#clients.delete(seat.client.key);
  }

  #client(key: string): Client {
    return this.#clients.get(key) ?? { key, open: 0, idle: 0, waiting: new Link() };
  }
}

function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}
