/** First messages of TLS, and the app that each leads to (RFC 8446 4.1.2, RFC 6066 3). */
import { type Extension, type HelloParts, hello, number, records, serverName } from "../../tcp/hello.ts";
import { type Case, CLIENT_ENDS } from "../case.ts";

const of = (extensions: readonly Extension[], more: HelloParts = {}) => records(hello({ extensions, ...more }));
const A = of([serverName("a.test")]);
const padding = (length: number): Extension => ({ type: 21, data: Buffer.alloc(length) });
const message = hello({ extensions: [serverName("a.test")] });
const everyByte = Array.from({ length: message.length }, (_, index) => index);

const CLOSES = "closes without a word";
const ONE_RECORD = "reads only the first record, and gives up after its delay";
const LENIENT = "reads the name and leaves the rest to the app; ours refuses what no TLS server accepts";

export const PASSTHROUGH: readonly Case[] = [
  { name: "a hostname", client: [A], ours: "a: [all]" },
  { name: "another hostname", client: [of([serverName("b.test")])], ours: "b: [all]" },
  { name: "a hostname in capitals", client: [of([serverName("A.Test")])], ours: "a: [all]" },
  {
    name: "a hostname with the root's dot",
    client: [of([serverName("a.test.")])],
    ours: "a: [all]",
    differs: "compares the text; ours takes it as in the Host field",
  },
  { name: "a hostname after other extensions", client: [of([padding(500), serverName("a.test")])], ours: "a: [all]" },
  { name: "8 KB of other extensions", client: [of([padding(8000), serverName("a.test")])], ours: "a: [all]" },
  { name: "a message byte by byte", client: [{ slowly: A }], ours: "a: [all]" },
  { name: "what follows the message", client: [Buffer.concat([A, Buffer.alloc(2000, 1)])], ours: "a: [all]" },
  { name: "a client that ends its direction", client: [A, "x", CLIENT_ENDS], ours: "a: [all]" },
  { name: "an old version", client: [of([serverName("a.test")], { version: 0x0301 })], ours: "a: [all]" },
  {
    name: "a message in two records",
    client: [records(message, [60])],
    ours: "a: [all]",
    differs: ONE_RECORD,
  },
  {
    name: "a message in as many records as bytes",
    client: [records(message, everyByte)],
    ours: "a: [all]",
    differs: ONE_RECORD,
  },
  { name: "no hostname", client: [of([])], ours: "alert 109", differs: CLOSES },
  { name: "no extensions", client: [records(hello({}))], ours: "alert 109", differs: CLOSES },
  { name: "a hostname that nobody has", client: [of([serverName("c.test")])], ours: "alert 112", differs: CLOSES },
  { name: "a hostname below another", client: [of([serverName("x.a.test")])], ours: "alert 112", differs: CLOSES },
  { name: "an address", client: [of([serverName("127.0.0.1")])], ours: "alert 112", differs: CLOSES },
  { name: "a hostname with a null", client: [of([serverName("a.test\0.c.test")])], ours: "alert 112", differs: CLOSES },
  { name: "an empty hostname", client: [of([serverName("")])], ours: "alert 50", differs: CLOSES },
  { name: "two hostnames", client: [of([serverName("a.test", "b.test")])], ours: "alert 50", differs: LENIENT },
  {
    name: "two lists of hostnames",
    client: [of([serverName("a.test"), serverName("b.test")])],
    ours: "alert 47",
    differs: LENIENT,
  },
  {
    name: "no cipher",
    client: [of([serverName("a.test")], { ciphers: Buffer.alloc(0) })],
    ours: "alert 50",
    differs: CLOSES,
  },
  { name: "17 KB", client: [of([padding(17_000), serverName("a.test")])], ours: "alert 22", differs: CLOSES },
  {
    name: "a message of 17 KB in two records",
    client: [records(hello({ extensions: [padding(17_000), serverName("a.test")] }), [9000])],
    ours: "alert 47",
    differs: CLOSES,
  },
  {
    name: "a message that is longer than it says",
    client: [Buffer.concat([Buffer.from([22, 3, 1]), number(7, 2), Buffer.from([1, 0, 0, 3, 3, 3, 0])])],
    ours: "alert 50",
    differs: CLOSES,
  },
  { name: "an empty record", client: [Buffer.from([22, 3, 1, 0, 0])], ours: "alert 10", differs: CLOSES },
  { name: "an alert", client: [Buffer.from([21, 3, 1, 0, 2, 1, 0])], ours: "alert 10", differs: CLOSES },
  { name: "HTTP", client: ["GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"], ours: "alert 70", differs: CLOSES },
  { name: "SSL 2", client: [Buffer.from([0x80, 9, 1, 0, 2, 0, 0, 0, 0, 0, 0])], ours: "alert 70", differs: CLOSES },
  { name: "nothing, in time", client: [], ours: "closed" },
  { name: "half a message, in time", client: [A.subarray(0, 40)], ours: "closed" },
  { name: "half a message and the end", client: [A.subarray(0, 40), CLIENT_ENDS], ours: "closed" },
];
