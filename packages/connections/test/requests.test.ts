/** Which requests a port carries out at once, where Node tells late of the end of a reply, as it does over TLS. */
import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { RequestPlaces } from "../src/index.ts";
import type { Seat } from "../src/seat.ts";

const PLACES = 4;

function port() {
  const seats = new Map<Socket, Seat>();
  const budget = { limits: { clients: 9, machines: 9, perAddress: 0, requests: PLACES } };
  const places = new RequestPlaces({ ...budget, seatOf: (socket) => seats.get(socket) });
  const connection = (address: string) => {
    const socket = {} as Socket;
    seats.set(socket, { client: { key: address } } as Seat);
    return { socket };
  };
  return { places, connection };
}

const reply = () => Object.assign(new EventEmitter(), { writableEnded: false }) as unknown as ServerResponse;
const end = (one: ServerResponse) => Object.assign(one, { writableEnded: true });

test("a client that has read the reply is served on that connection, although its end was not told yet", () => {
  const { places, connection } = port();
  const one = connection("192.0.2.1");
  const [first, second] = [reply(), reply()];
  expect(places.take(one, first)).toBe(true);
  expect(places.take(one, second)).toBe(false);
  end(first);
  expect(places.take(one, second)).toBe(true);
  expect(places.take(one, reply())).toBe(false);
});

test("places are shared by token where there is one, whatever address it comes from, and come back", () => {
  const { places, connection } = port();
  const replies = ["192.0.2.1", "192.0.2.2"].map((address) => {
    const one = reply();
    expect(places.take(connection(address), one, "a token")).toBe(true);
    return one;
  });
  expect(places.take(connection("192.0.2.3"), reply(), "a token")).toBe(false);
  expect(places.take(connection("192.0.2.1"), reply(), "another")).toBe(true);
  for (const one of replies) end(one).emit("close");
  expect(places.take(connection("192.0.2.3"), reply(), "a token")).toBe(true);
});
