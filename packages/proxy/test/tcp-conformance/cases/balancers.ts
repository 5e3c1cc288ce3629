/** Headers of the PROXY protocol from a balancer in front, and those to the app (the specification, 2.1 and 2.2). */
import { type Case, CLIENT_ENDS } from "../case.ts";

const SIGNATURE = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");
const V4 = [192, 0, 2, 7, 198, 51, 100, 1, 0x1f, 0x90, 0x15, 0x38];
const V6 = [0x20, 1, 0xd, 0xb8, ...zeros(11), 7, 0x20, 1, 0xd, 0xb8, ...zeros(11), 1, 0x1f, 0x90, 0x15, 0x38];

function zeros(count: number): number[] {
  return Array.from({ length: count }, () => 0);
}

/** Version 2: version and command, family and transport, and what follows. */
function v2(command: number, family: number, rest: readonly number[] = [], length = rest.length): Buffer {
  return Buffer.concat([SIGNATURE, Buffer.from([command, family, length >> 8, length & 255, ...rest])]);
}

const extension = (type: number, ...value: number[]) => [type, 0, value.length, ...value];
const HELLO = "hello";
const TOLD4 = "PROXY TCP4 192.0.2.7 198.51.100.1 8080 5432\\x0d\\x0a";
const TOLD6 = "PROXY TCP6 2001:db8::7 2001:db8::1 8080 5432\\x0d\\x0a";
const ITSELF = "PROXY TCP4 127.0.0.1 127.0.0.1 <client> <port>\\x0d\\x0a";
const length = (told: string) => told.replaceAll(/\\x../g, "x").length;

/** What the app gets is as long as this; the ports in `ITSELF` have five digits, or four. */
const after = (told: string) => ({ expects: length(told) + HELLO.length });
/** The client ends, because nobody knows how long its ports are. */
const ended = { expects: 1000 };

const OTHER = "refuses it; ours takes the addresses of the connection, as for a header without any (2.2)";
const LENIENT = "makes another address of it; the specification has one form for each (2.1)";

export const BALANCED: readonly Case[] = [
  {
    name: "version 1",
    client: ["PROXY TCP4 192.0.2.7 198.51.100.1 8080 5432\r\nhello"],
    ...after(TOLD4),
    ours: "a: [all]",
  },
  {
    name: "version 1, IPv6",
    client: ["PROXY TCP6 2001:db8::7 2001:db8::1 8080 5432\r\nhello"],
    ...after(TOLD6),
    ours: "a: [all]",
  },
  { name: "version 1, unknown", client: ["PROXY UNKNOWN\r\nhello", CLIENT_ENDS], ...ended, ours: `a: ${ITSELF}hello` },
  {
    name: "version 1, unknown with more",
    client: ["PROXY UNKNOWN ffff::1 ffff::2 1 2\r\nhello", CLIENT_ENDS],
    ...ended,
    ours: `a: ${ITSELF}hello`,
    differs: "wants the line to end there; the specification lets senders say more (2.1)",
  },
  { name: "version 2", client: [v2(0x21, 0x11, V4), HELLO], ...after(TOLD4), ours: `a: ${TOLD4}hello` },
  { name: "version 2, IPv6", client: [v2(0x21, 0x21, V6), HELLO], ...after(TOLD6), ours: `a: ${TOLD6}hello` },

  {
    name: "version 2 with extensions",
    client: [v2(0x21, 0x11, [...V4, ...extension(2, 97), ...extension(4, 0, 0, 0)]), HELLO],
    ...after(TOLD4),
    ours: `a: ${TOLD4}hello`,
  },
  {
    name: "version 2 with an extension that nobody knows",
    client: [v2(0x21, 0x11, [...V4, ...extension(0xee, 1, 2)]), HELLO],
    ...after(TOLD4),
    ours: `a: ${TOLD4}hello`,
  },
  {
    name: "version 2 with half an extension",
    client: [v2(0x21, 0x11, [...V4, 2, 0, 9, 1]), HELLO],
    ...after(TOLD4),
    ours: "closed",
  },
  {
    name: "version 2, unspecified",
    client: [v2(0x21, 0x00), HELLO, CLIENT_ENDS],
    ...ended,
    ours: `a: ${ITSELF}hello`,
    differs: OTHER,
  },
  {
    name: "version 2, a Unix socket",
    client: [v2(0x21, 0x31, zeros(216)), HELLO, CLIENT_ENDS],
    ...ended,
    ours: `a: ${ITSELF}hello`,
    differs: OTHER,
  },
  {
    name: "version 2, UDP",
    client: [v2(0x21, 0x12, V4), HELLO, CLIENT_ENDS],
    ...ended,
    ours: `a: ${ITSELF}hello`,
    differs: OTHER,
  },
  { name: "the balancer itself", client: [v2(0x20, 0x00), HELLO, CLIENT_ENDS], ...ended, ours: `a: ${ITSELF}hello` },
  {
    name: "the balancer itself with addresses",
    client: [v2(0x20, 0x11, V4), HELLO, CLIENT_ENDS],
    ...ended,
    ours: `a: ${ITSELF}hello`,
  },
  { name: "no header", client: ["hello, is anybody there?"], ours: "closed" },
  {
    name: "version 1 with an address of the other family",
    client: ["PROXY TCP4 2001:db8::7 2001:db8::1 8080 5432\r\nhello"],
    ours: "closed",
  },
  {
    name: "version 1 with half an address",
    client: ["PROXY TCP4 192.0.2 198.51.100.1 8080 5432\r\nhello"],
    ours: "closed",
    differs: LENIENT,
  },
  {
    name: "version 1 with a port too high",
    client: ["PROXY TCP4 192.0.2.7 198.51.100.1 80800 5432\r\nhello"],
    ours: "closed",
    differs: LENIENT,
  },
  {
    name: "version 1 with a port that begins with 0",
    client: ["PROXY TCP4 192.0.2.7 198.51.100.1 08080 5432\r\nhello"],
    ours: "closed",
    differs: LENIENT,
  },
  {
    name: "version 1 with two blanks",
    client: ["PROXY TCP4  192.0.2.7 198.51.100.1 8080 5432\r\nhello"],
    ours: "closed",
  },
  {
    name: "version 1 with a bare line feed",
    client: ["PROXY TCP4 192.0.2.7 198.51.100.1 8080 5432\nhello"],
    ours: "closed",
  },
  {
    name: "version 1 with one field too many",
    client: ["PROXY TCP4 192.0.2.7 198.51.100.1 8080 5432 1\r\nhello"],
    ours: "closed",
  },
  { name: "version 1 without an end", client: [`PROXY TCP4 ${"1".repeat(200)}`], ours: "closed" },
  {
    name: "version 1, another family",
    client: ["PROXY UDP4 192.0.2.7 198.51.100.1 8080 5432\r\nhello"],
    ours: "closed",
  },
  { name: "version 3", client: [v2(0x31, 0x11, V4), HELLO], ours: "closed" },
  { name: "version 2, another command", client: [v2(0x22, 0x11, V4), HELLO], ours: "closed" },
  { name: "version 2, another family", client: [v2(0x21, 0x41, V4), HELLO], ours: "closed" },
  { name: "version 2, too short for its addresses", client: [v2(0x21, 0x21, V4), HELLO], ours: "closed" },
  { name: "version 2, longer than it is", client: [v2(0x21, 0x11, V4, 1000), CLIENT_ENDS], ours: "closed" },
  {
    name: "version 2, longer than anybody reads",
    client: [v2(0x21, 0x11, V4, 0xffff), Buffer.alloc(40_000)],
    ours: "closed",
  },
  {
    name: "two headers",
    client: ["PROXY TCP4 192.0.2.7 198.51.100.1 8080 5432\r\n", v2(0x21, 0x11, V4), CLIENT_ENDS],
    ...ended,
    ours: "a: [all]",
  },
  { name: "half a header, in time", client: ["PROXY TCP4 192"], ours: "closed" },
  { name: "nothing, in time", client: [], ours: "closed" },
];

export const TELLS_V1: readonly Case[] = [
  { name: "a client", client: [HELLO, CLIENT_ENDS], ...ended, ours: `a: ${ITSELF}hello` },
  {
    name: "a client that sends a header of its own",
    client: ["PROXY TCP4 192.0.2.7 198.51.100.1 8080 5432\r\n", CLIENT_ENDS],
    ...ended,
    ours: `a: ${ITSELF}${TOLD4}`,
  },
];

const HEADER2 =
  "\\x0d\\x0a\\x0d\\x0a\\x00\\x0d\\x0aQUIT\\x0a!\\x11\\x00\\x0c\\x7f\\x00\\x00\\x01\\x7f\\x00\\x00\\x01<client><port>";

export const TELLS_V2: readonly Case[] = [
  { name: "a client", client: [HELLO, CLIENT_ENDS], ...ended, ours: `a: ${HEADER2}hello` },
];
