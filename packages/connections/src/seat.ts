/** The place of one connection in the budget, and the lists of those that wait. */
import type { Socket } from "node:net";
import type { Held } from "./limits.ts";

/** A place in a circular list, whose beginning and end is a link without a seat. */
export class Link {
  readonly seat: Seat | undefined;
  #before: Link = this;
  #after: Link = this;

  constructor(seat?: Seat) {
    this.seat = seat;
  }

  /** The seat that has been in the list for longest. */
  get eldest(): Seat | undefined {
    return this.#after.seat;
  }

  append(link: Link): void {
    link.#before = this.#before;
    link.#after = this;
    this.#before.#after = link;
    this.#before = link;
  }

  leave(): void {
    this.#before.#after = this.#after;
    this.#after.#before = this.#before;
    this.#before = this;
    this.#after = this;
  }
}

/** The connections of one client address. */
export interface Client extends Held {
  readonly key: string;
  /** Those that wait, eldest first. */
  readonly waiting: Link;
}

/** What a seat tells the budget. */
interface Owner {
  began(seat: Seat): void;
  rests(seat: Seat): void;
  rename(seat: Seat, address: string): boolean;
}

export class Seat {
  readonly socket: Socket;
  /** The client's address: that of the connection, unless a balancer named another one. */
  address: string | undefined;
  client: Client;
  /** Whether it waits for a request, and so is in the two lists of those that do: of all clients, and of its own. */
  idle = false;
  readonly amongAll = new Link(this);
  readonly amongOwn = new Link(this);
  readonly #owner: Owner;

  constructor(owner: Owner, socket: Socket, client: Client) {
    this.#owner = owner;
    this.socket = socket;
    this.address = socket.remoteAddress;
    this.client = client;
  }

  /** A whole request has arrived. Costs next to nothing: it is called for each one. */
  begin(): void {
    if (this.idle) this.#owner.began(this);
  }

  /** Nothing is open on the connection any more: it is closed if its descriptor is needed. */
  rest(): void {
    if (!this.idle) this.#owner.rests(this);
  }

  /** A balancer says whose connection it is. Closes it and returns false if that client has too many. */
  isOf(address: string): boolean {
    return this.#owner.rename(this, address);
  }
}
