/** Requests that want to switch to another protocol (RFC 9110 7.8; RFC 6455). */
import { createHash } from "node:crypto";
import type { Talk } from "../app.ts";
import { answer, both, type Case, CLIENT_ENDS, fine, get, HOST, UPGRADE } from "../case.ts";
import { valueOf } from "../wire.ts";

const SWITCHED = `HTTP/1.1 101 Switching Protocols\r\nX-App: 1\r\n${UPGRADE}`;
const KEY = "dGhlIHNhbXBsZSBub25jZQ==";
const WEBSOCKET = `Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: ${KEY}\r\nSec-WebSocket-Version: 13\r\n`;

const switches = ({ socket, echo }: Talk) => {
  socket.write(`${SWITCHED}\r\nhello `);
  echo();
};

const acceptsWebSocket = ({ socket, request, echo }: Talk) => {
  const key = `${valueOf(request, "sec-websocket-key")}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const accept = createHash("sha1").update(key).digest("base64");
  const fields = `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n`;
  socket.write(`HTTP/1.1 101 Switching Protocols\r\n${fields}\r\n`);
  echo();
};

export const UPGRADES: readonly Case[] = [
  {
    name: "a WebSocket",
    client: [get("/chat", WEBSOCKET), { sees: "\r\n\r\n" }, "\x81\x05hello", { sees: "hello" }],
    atEnd: acceptsWebSocket,
    look: ["upgrade", "sec-websocket-accept"],
    ours: {
      answers: [
        "101 {upgrade: websocket; sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=}",
        "tunnel \\x81\\x05hello",
      ],
      seen: ["GET /chat {upgrade: websocket}"],
      after: "closed",
    },
  },
  {
    name: "bytes that came with the heads",
    client: [`${get("/", UPGRADE)}early `, { sees: "early" }, "late", { sees: "late" }],
    atEnd: switches,
    ours: { answers: ["101", "tunnel hello early late"], seen: ["GET /"], after: "closed" },
  },
  {
    name: "what looks like a request is not a request in a tunnel",
    client: [get("/", UPGRADE), { sees: "hello" }, get("/inner"), { sees: "/inner" }],
    atEnd: switches,
    ours: {
      answers: ["101", "tunnel hello GET /inner HTTP/1.1\\r\\nHost: shop.test\\r\\n\\r\\n"],
      seen: ["GET /"],
      after: "closed",
    },
  },
  {
    name: "a client that ends its direction still hears the app",
    client: [get("/", UPGRADE), { sees: "101" }, "bye", CLIENT_ENDS],
    atEnd: ({ socket }) => {
      socket.write(`${SWITCHED}\r\n`);
      socket.removeAllListeners("end");
      socket.on("end", () => socket.end("still here"));
    },
    ours: { answers: ["101", "tunnel still here"], seen: ["GET /"], after: "closed" },
    differs: { nginx: "ends both directions; each may end by itself (RFC 9110 7.8 leaves it to the new protocol)" },
  },
  {
    name: "refused, with 403",
    client: [get("/", UPGRADE)],
    atEnd: answer("no", "", "403 Forbidden"),
    ours: fine("GET /", "403 no"),
  },
  {
    name: "ignored",
    client: [get("/", UPGRADE)],
    atEnd: answer("plain"),
    ours: fine("GET /", "200 plain"),
  },
  {
    name: "with a body is forwarded as an ordinary request",
    client: [`POST / HTTP/1.1\r\n${HOST}${UPGRADE}Content-Length: 5\r\n\r\nhello`],
    asks: ["POST"],
    look: ["upgrade"],
    ours: fine("POST / hello"),
    differs: {
      nginx:
        "passes the request for an upgrade on; ours ignores it, as RFC 9110 7.8 allows, so that the two agree where the body ends",
    },
  },
  {
    name: "to h2c is forwarded as an ordinary request",
    client: [
      get("/", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"),
    ],
    look: ["upgrade", "http2-settings"],
    ours: fine("GET /"),
    differs: both(
      "passes it on; behind an upgrade to HTTP/2 requests reach the app that nobody looks at (RFC 9113 3.1)",
    ),
  },
  {
    name: "without Connection is not an upgrade",
    client: [get("/", "Upgrade: echo\r\n")],
    look: ["upgrade"],
    ours: fine("GET /"),
    differs: both("passes Upgrade on, which means nothing without Connection (RFC 9110 7.8)"),
  },
  {
    name: "in HTTP/1.0 is not an upgrade",
    client: [`GET / HTTP/1.0\r\n${HOST}${UPGRADE}\r\n`],
    look: ["upgrade"],
    ours: { answers: ["200 ok"], seen: ["GET /"], after: "closed" },
    differs: both("passes it on; a server must ignore it in HTTP/1.0 (RFC 9110 7.8)"),
  },
];
