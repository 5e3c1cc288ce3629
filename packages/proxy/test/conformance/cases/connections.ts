/** Who closes when, and what a connection carries one after the other (RFC 9112 9). */
import type { Talk } from "../app.ts";
import {
  APP_ASKED,
  APP_CLOSES,
  APP_TOLD,
  answer,
  both,
  type Case,
  CLIENT_ENDS,
  fine,
  get,
  HOST,
  OK,
  post,
} from "../case.ts";

const old = (fields = "") => `GET / HTTP/1.0\r\n${HOST}${fields}\r\n`;

/** Closes a kept connection in the moment in which it is used again. */
const diesWhenUsedAgain = ({ socket, nth }: Talk) => {
  if (nth === 1) socket.write(OK);
  else socket.destroy();
};

export const CONNECTIONS: readonly Case[] = [
  { name: "HTTP/1.1 is kept", client: [get()], ours: fine("GET /") },
  {
    name: "Connection: close is not",
    client: [get("/", "Connection: close\r\n")],
    ours: { answers: ["200 ok"], seen: ["GET /"], after: "closed" },
  },
  {
    name: "Connection: CLOSE in a list is not either",
    client: [get("/", "Connection: X-A, CLOSE\r\n")],
    ours: { answers: ["200 ok"], seen: ["GET /"], after: "closed" },
  },
  {
    name: "HTTP/1.0 is closed",
    client: [old()],
    ours: { answers: ["200 ok"], seen: ["GET /"], after: "closed" },
  },
  { name: "HTTP/1.0 with keep-alive is kept", client: [old("Connection: keep-alive\r\n")], ours: fine("GET /") },
  {
    name: "HTTP/1.0 with keep-alive is told so",
    client: [old("Connection: Keep-Alive\r\n")],
    look: ["connection"],
    ours: fine("GET /", "200 ok {connection: keep-alive}"),
    differs: { HAProxy: "tells the app as well; RFC 9110 7.6.1 wants Connection removed" },
  },
  {
    name: "HTTP/1.0 without Host",
    client: ["GET / HTTP/1.0\r\n\r\n"],
    ours: { answers: ["refused 400"], seen: [], after: "closed" },
    differs: both("passes it on, as RFC 9112 3.3 allows; ours cannot tell for which app it is"),
  },
  {
    name: "pipelined requests are answered in order",
    client: [get("/1") + post("two") + get("/3")],
    asks: ["GET", "POST", "GET"],
    atEnd: ({ socket, request }) => void socket.write(answer(request.line.split(" ")[1] ?? "")),
    ours: {
      answers: ["200 /1", "200 /", "200 /3"],
      seen: ["GET /1", "POST / two", "GET /3"],
      after: "open",
    },
  },
  {
    name: "pipelined HEAD and GET",
    client: ["HEAD /1 HTTP/1.1\r\nHost: shop.test\r\n\r\n", get("/2")],
    asks: ["HEAD", "GET"],
    atEnd: ({ socket, request }) =>
      void socket.write(answer("ok").slice(0, request.line.startsWith("HEAD") ? -2 : undefined)),
    ours: { answers: ["200", "200 ok"], seen: ["HEAD /1", "GET /2"], after: "open" },
  },
  {
    name: "what is pipelined behind Connection: close is not read",
    client: [get("/1", "Connection: close\r\n") + get("/2")],
    ours: { answers: ["200 ok"], seen: ["GET /1"], after: "closed" },
  },
  {
    name: "what is pipelined behind a malformed request is not read",
    client: [get("/1") + get("/2", "X A: b\r\n") + get("/3")],
    asks: ["GET", "GET"],
    ours: { answers: ["200 ok", "refused 400"], seen: ["GET /1"], after: "closed" },
  },
  {
    name: "a client that ends its direction while the app thinks",
    client: [get(), APP_ASKED, CLIENT_ENDS, APP_TOLD],
    atHead: ({ socket, told }) => void told.then(() => socket.write(OK)),
    ours: { answers: [], seen: ["GET / [unread]"], after: "closed" },
    differs: { HAProxy: "answers anyway; ours, like nginx, assumes that it has left (RFC 9112 9.5)" },
  },
  {
    name: "a client that ends without a request",
    client: [CLIENT_ENDS],
    ours: { answers: [], seen: [], after: "closed" },
    differs: { HAProxy: "says 400 to nobody; nothing was asked" },
  },
  {
    name: "a client that ends in the middle of a head",
    client: ["GET / HTTP/1.1\r\nHost: sh", CLIENT_ENDS],
    ours: { answers: [], seen: [], after: "closed" },
    differs: { HAProxy: "says 400 to nobody; RFC 9112 8 leaves it free" },
  },
  {
    name: "an app that closes a kept connection between two requests",
    client: [get("/1"), { sees: "ok" }, APP_CLOSES, get("/2")],
    asks: ["GET", "GET"],
    ours: { answers: ["200 ok", "200 ok"], seen: ["GET /1", "GET /2"], after: "open" },
  },
  {
    name: "an app that closes a kept connection in the moment of a GET",
    client: [get("/1"), { sees: "ok" }, get("/2")],
    asks: ["GET", "GET"],
    atEnd: diesWhenUsedAgain,
    ours: { answers: ["200 ok", "200 ok"], seen: ["GET /1", "GET /2", "GET /2"], after: "open" },
    differs: { HAProxy: "closes, for the client to ask again; RFC 9112 9.3.1 lets a proxy do it for safe methods" },
  },
  {
    name: "an app that closes a kept connection in the moment of a POST",
    client: [get("/1"), { sees: "ok" }, post("hello")],
    asks: ["GET", "POST"],
    atEnd: diesWhenUsedAgain,
    ours: { answers: ["200 ok", "refused 502"], seen: ["GET /1", "POST / hello"], after: "open" },
    differs: { HAProxy: "closes without a word; 502 says what went wrong (RFC 9110 15.6.3)" },
  },
  {
    name: "an app that does not answer a POST is not asked again",
    client: [post("hello")],
    asks: ["POST"],
    atEnd: ({ socket }) => socket.destroy(),
    ours: { answers: ["refused 502"], seen: ["POST / hello"], after: "open" },
  },
];
