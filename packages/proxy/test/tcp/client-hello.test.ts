/** Which hostname the first message of a TLS connection names, however it is cut, and what is not such a message. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ALERTS, alertRecord, MAX_HELLO_BYTES, readClientHello } from "../../src/tcp/client-hello.ts";
import {
  type Extension,
  type HelloParts,
  hello,
  nodesHello,
  number,
  protocols,
  records,
  serverName,
  vector,
} from "./hello.ts";

const NAME = fc
  .array(fc.stringMatching(/^[a-z]([a-z0-9-]{0,10}[a-z0-9])?$/), { minLength: 1, maxLength: 5 })
  .map((labels) => labels.join("."));
const EXTENSION = fc.record({
  // Protocols have their own tests: garbage in their place is refused.
  type: fc.integer({ min: 1, max: 0xffff }).filter((type) => type !== 16),
  data: fc.uint8Array({ maxLength: 300 }).map((data) => Buffer.from(data)),
});
const EXTENSIONS = fc.uniqueArray(EXTENSION, { selector: ({ type }) => type, maxLength: 8 });
const CUTS = fc.array(fc.nat({ max: 3000 }), { maxLength: 12 });

const said = (extensions: readonly Extension[], more: HelloParts = {}) => records(hello({ extensions, ...more }));
const named = (name: string | undefined, offered: string[] = []) => ({
  kind: "hello",
  serverName: name,
  protocols: offered,
});
const bad = (alert: number) => ({ kind: "bad", alert });

describe("a first message", () => {
  test("of a real client is understood", async () => {
    expect(readClientHello(await nodesHello("db.example.com"))).toEqual(named("db.example.com"));
    expect(readClientHello(await nodesHello(undefined))).toEqual(named(undefined));
  });

  test("names the same hostname, however it is cut into records and whatever else it has", () => {
    fc.assert(
      fc.property(NAME, EXTENSIONS, EXTENSIONS, CUTS, (name, before, after, cuts) => {
        const others = after.filter(({ type }) => !before.some((one) => one.type === type));
        const bytes = records(hello({ extensions: [...before, serverName(name.toUpperCase()), ...others] }), cuts);
        fc.pre(bytes.length < MAX_HELLO_BYTES);
        expect(readClientHello(bytes)).toEqual(named(name));
        expect(readClientHello(Buffer.concat([bytes, Buffer.from("what follows")]))).toEqual(named(name));
      }),
    );
  });

  test("is waited for until its last byte", () => {
    fc.assert(
      fc.property(NAME, EXTENSIONS, CUTS, (name, others, cuts) => {
        const bytes = records(hello({ extensions: [serverName(name), ...others] }), cuts);
        fc.pre(bytes.length < MAX_HELLO_BYTES);
        for (let length = 0; length < bytes.length; length += 1)
          expect(readClientHello(bytes.subarray(0, length))).toEqual({ kind: "more" });
      }),
      { numRuns: 20 },
    );
  });

  test("may be without a name, or without extensions", () => {
    expect(readClientHello(said([]))).toEqual(named(undefined));
    expect(readClientHello(records(hello({ extensions: undefined })))).toEqual(named(undefined));
  });

  test("says which protocols the client offers", async () => {
    const offer = ["h2", "http/1.1"];
    expect(readClientHello(await nodesHello("db.test", offer))).toEqual(named("db.test", offer));
    expect(readClientHello(said([protocols("acme-tls/1"), serverName("db.test")]))).toEqual(
      named("db.test", ["acme-tls/1"]),
    );
  });

  test.each<[string, Buffer]>([
    ["an empty list", vector(Buffer.alloc(0), 2)],
    ["an empty name", vector(vector(Buffer.alloc(0), 1), 2)],
    ["a name that is cut off", vector(Buffer.from([5, 104, 50]), 2)],
    ["something after the list", Buffer.concat([protocols("h2").data, Buffer.from([0])])],
  ])("is refused when its protocols are %s", (_what, data) => {
    expect(readClientHello(said([serverName("db.test"), { type: 16, data }]))).toEqual(bad(ALERTS.decodeError));
  });

  test("may name the root's dot, and underscores", () => {
    expect(readClientHello(said([serverName("db.test.")]))).toEqual(named("db.test"));
    expect(readClientHello(said([serverName("_x.my_db.test")]))).toEqual(named("_x.my_db.test"));
  });

  test("that is changed anywhere is read, refused or waited for: nothing else happens", () => {
    fc.assert(
      fc.property(NAME, fc.nat(), fc.nat({ max: 255 }), CUTS, (name, at, byte, cuts) => {
        const bytes = records(hello({ extensions: [serverName(name)] }), cuts);
        bytes[at % bytes.length] = byte;
        expect(["hello", "bad", "more"]).toContain(readClientHello(bytes).kind);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("what is not a first message", () => {
  test("ends at once, or once it is too long", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 4000 }), (noise) => {
        const { kind } = readClientHello(Buffer.from(noise));
        expect(kind).toBe(noise.length === 0 || (noise[0] === 22 && kind !== "bad") ? "more" : "bad");
      }),
    );
    const endless = Buffer.concat(Array.from({ length: 4000 }, () => Buffer.from([22, 3, 1, 0, 1, 0])));
    endless[5] = 1;
    endless[11] = 0xff;
    expect(readClientHello(endless)).toEqual(bad(ALERTS.illegalParameter));
    // Clients send one record or two, and each costs a look whenever more comes.
    const long = hello({ extensions: [serverName(`${"a".repeat(60)}.test`)] });
    const many = records(
      long,
      Array.from({ length: 70 }, (_, index) => index + 1),
    );
    expect(readClientHello(many)).toEqual(bad(ALERTS.illegalParameter));
    const dripping = records(Buffer.concat([number(1, 1), number(16_000, 3), Buffer.alloc(15_000)]), [
      ...Array.from({ length: 2000 }, (_, index) => index + 4),
    ]);
    expect(dripping.length).toBeGreaterThan(MAX_HELLO_BYTES);
    expect(readClientHello(dripping.subarray(0, MAX_HELLO_BYTES))).toEqual(bad(ALERTS.illegalParameter));
  });

  test.each<[string, Buffer, number]>([
    ["HTTP", Buffer.from("GET / HTTP/1.1\r\n"), ALERTS.protocolVersion],
    ["SSL 2", Buffer.from([0x80, 0x2e, 1, 0, 2]), ALERTS.protocolVersion],
    ["a version of the future", Buffer.from([22, 4, 0, 0, 5]), ALERTS.protocolVersion],
    ["an alert", alertRecord(0), ALERTS.unexpectedMessage],
    ["another message", records(Buffer.from([2, 0, 0, 0])), ALERTS.unexpectedMessage],
    ["an empty record", Buffer.from([22, 3, 1, 0, 0]), ALERTS.unexpectedMessage],
    ["a record over its limit", Buffer.from([22, 3, 1, 0x40, 1]), ALERTS.recordOverflow],
    ["a message over the limit", records(Buffer.from([1, 1, 0, 0])), ALERTS.illegalParameter],
    ["a version before SSL 3", said([], { version: 0x0200 }), ALERTS.protocolVersion],
    ["no cipher", said([], { ciphers: Buffer.alloc(0) }), ALERTS.decodeError],
    ["half a cipher", said([], { ciphers: Buffer.alloc(3) }), ALERTS.decodeError],
    ["no compression", said([], { compressions: Buffer.alloc(0) }), ALERTS.decodeError],
    ["two names", said([serverName("a.test", "b.test")]), ALERTS.decodeError],
    ["two lists of names", said([serverName("a.test"), serverName("b.test")]), ALERTS.illegalParameter],
    ["an empty name", said([serverName("")]), ALERTS.decodeError],
    ["an empty list", said([serverName()]), ALERTS.decodeError],
    ["bytes after the list", said([{ type: 0, data: Buffer.from([0, 0, 9]) }]), ALERTS.decodeError],
    ["a list past its end", said([{ type: 0, data: Buffer.from([0, 9, 0]) }]), ALERTS.decodeError],
    ["another kind of name", said([{ type: 0, data: vector(Buffer.from([1, 0, 1, 97]), 2) }]), ALERTS.decodeError],
    ["an address", said([serverName("192.0.2.7")]), ALERTS.unrecognizedName],
    ["a name with a blank", said([serverName("a b.test")]), ALERTS.unrecognizedName],
    ["a name with a null", said([serverName("a.test\0.b.test")]), ALERTS.unrecognizedName],
    ["a name over the limit", said([serverName("a.".repeat(127) + "test")]), ALERTS.unrecognizedName],
    ["bytes after the extensions", records(trailing()), ALERTS.decodeError],
  ])("%s gets its alert", (_what, bytes, alert) => {
    expect(readClientHello(bytes)).toEqual(bad(alert));
  });
});

/** A message with two bytes too many. */
function trailing(): Buffer {
  const message = Buffer.concat([hello({ extensions: [] }), Buffer.from([0, 0])]);
  message.writeUIntBE(message.length - 4, 1, 3);
  return message;
}
