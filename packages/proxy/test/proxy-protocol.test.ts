/** Headers of the PROXY protocol: what is written is read again, and nothing else is taken for one. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Origin, proxyHeader, readProxyHeader } from "../src/proxy-protocol.ts";

const PORT = fc.nat({ max: 0xffff });
const V4 = fc.ipV4();
/** In the form in which Node has addresses. */
const V6 = fc
  .ipV6()
  .map((address) => new URL(`http://[${address}]`).hostname.slice(1, -1))
  .filter(isUsual);
const ORIGIN = fc.oneof(originOf(V4), originOf(V6));
const VERSION = fc.constantFrom("v1" as const, "v2" as const);

/** Node writes addresses with an IPv4 address inside in another way than URLs. */
function isUsual(address: string): boolean {
  return !address.startsWith("::");
}

function originOf(address: fc.Arbitrary<string>): fc.Arbitrary<Origin> {
  const end = fc.record({ address, port: PORT });
  return fc.record({ source: end, destination: end });
}

const SIGNATURE = "\r\n\r\n\0\r\nQUIT\n";
const v2 = (head: number[], body: number[] = []) =>
  Buffer.concat([
    Buffer.from(SIGNATURE, "latin1"),
    Buffer.from([...head, body.length >> 8, body.length & 255, ...body]),
  ]);
const V4_BODY = [192, 0, 2, 7, 198, 51, 100, 1, 0x1f, 0x90, 0x15, 0x38];
const V4_ORIGIN: Origin = {
  source: { address: "192.0.2.7", port: 8080 },
  destination: { address: "198.51.100.1", port: 5432 },
};

describe("a header", () => {
  test("says what was written, in either version, and ends where its connection's bytes begin", () => {
    fc.assert(
      fc.property(VERSION, ORIGIN, fc.string(), (version, origin, data) => {
        const header = proxyHeader(version, origin);
        const reading = { kind: "header", length: header.length, origin, local: false };
        expect(readProxyHeader(header)).toEqual(reading);
        expect(readProxyHeader(Buffer.concat([header, Buffer.from(data)]))).toEqual(reading);
      }),
    );
  });

  test("is waited for until its last byte", () => {
    fc.assert(
      fc.property(VERSION, ORIGIN, (version, origin) => {
        const header = proxyHeader(version, origin);
        for (let length = 0; length < header.length; length += 1)
          expect(readProxyHeader(header.subarray(0, length))).toEqual({ kind: "more" });
      }),
    );
  });

  test("has the bytes of the specification", () => {
    expect(proxyHeader("v1", V4_ORIGIN).toString()).toBe("PROXY TCP4 192.0.2.7 198.51.100.1 8080 5432\r\n");
    expect(proxyHeader("v2", V4_ORIGIN)).toEqual(v2([0x21, 0x11], V4_BODY));
    const six = { source: { address: "2001:db8::7", port: 1 }, destination: { address: "fe80::1%eth0", port: 2 } };
    expect(proxyHeader("v1", six).toString()).toBe("PROXY TCP6 2001:db8::7 fe80::1 1 2\r\n");
    expect(proxyHeader("v2", six).toString("hex")).toMatch(/^.{24}212100242001(0db8)0{22}07fe80.*0100010002$/);
    const mapped = { source: { address: "::ffff:1.2.3.4", port: 1 }, destination: { address: "::1", port: 2 } };
    expect(proxyHeader("v2", mapped).subarray(16, 32).toString("hex")).toBe("00000000000000000000ffff01020304");
  });

  test("announces a connection whose ends are not known, or of two families", () => {
    const unknown = { source: { address: "", port: 0 }, destination: V4_ORIGIN.destination };
    expect(proxyHeader("v1", unknown).toString()).toBe("PROXY UNKNOWN\r\n");
    expect(proxyHeader("v2", unknown)).toEqual(v2([0x21, 0x00]));
    const nothing = { kind: "header", origin: undefined, local: true };
    expect(readProxyHeader(proxyHeader("v2", unknown))).toMatchObject(nothing);
  });

  test("that is changed anywhere is read, refused or waited for: nothing else happens", () => {
    fc.assert(
      fc.property(VERSION, ORIGIN, fc.nat(), fc.nat({ max: 255 }), (version, origin, at, byte) => {
        const header = proxyHeader(version, origin);
        header[at % header.length] = byte;
        expect(["header", "bad", "more"]).toContain(readProxyHeader(header).kind);
      }),
      { numRuns: 2000 },
    );
  });

  test.each<[string, Buffer, Partial<ReturnType<typeof readProxyHeader>>]>([
    ["version 2 with extensions", v2([0x21, 0x11], [...V4_BODY, 2, 0, 1, 97]), { origin: V4_ORIGIN, local: false }],
    ["a check of the balancer's own", v2([0x20, 0x00]), { origin: undefined, local: true }],
    ["a check with addresses", v2([0x20, 0x11], V4_BODY), { origin: undefined, local: true }],
    ["a Unix socket", v2([0x21, 0x31], Array(216).fill(0)), { origin: undefined, local: true }],
    ["UDP", v2([0x21, 0x12], V4_BODY), { origin: undefined, local: true }],
    ["version 1 without addresses", Buffer.from("PROXY UNKNOWN\r\n"), { origin: undefined }],
    ["version 1 with what is to be ignored", Buffer.from("PROXY UNKNOWN ff:f::f f 1 2\r\n"), { origin: undefined }],
  ])("%s is accepted", (_what, bytes, reading) => {
    expect(readProxyHeader(bytes)).toMatchObject({ kind: "header", length: bytes.length, ...reading });
  });
});

describe("not a header is", () => {
  test.each<[string, Buffer]>([
    ["HTTP", Buffer.from("GET / HTTP/1.1\r\n")],
    ["almost version 1", Buffer.from("PROXX TCP4")],
    ["another version", v2([0x11, 0x11], V4_BODY)],
    ["another command", v2([0x22, 0x11], V4_BODY)],
    ["another family", v2([0x21, 0x41], V4_BODY)],
    ["another transport", v2([0x21, 0x13], V4_BODY)],
    ["one too short for its addresses", v2([0x21, 0x21], V4_BODY)],
    ["one with half an extension", v2([0x21, 0x11], [...V4_BODY, 2, 0, 2, 97])],
    ["one with the beginning of an extension", v2([0x21, 0x11], [...V4_BODY, 2])],
    ["one too long", Buffer.concat([v2([0x21, 0x11]).subarray(0, 14), Buffer.from([0xff, 0xff])])],
    ["a line without an end", Buffer.from(`PROXY TCP4 ${"1".repeat(100)}`)],
    ["a line with an address of the other family", Buffer.from("PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n")],
    ["a line with half an address", Buffer.from("PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n")],
    ["a line with a port too high", Buffer.from("PROXY TCP4 1.2.3.4 1.2.3.4 65536 2\r\n")],
    ["a line with a port that begins with 0", Buffer.from("PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n")],
    ["a line with two blanks", Buffer.from("PROXY  TCP4 1.2.3.4 1.2.3.4 1 2\r\n")],
    ["a line with more", Buffer.from("PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n")],
    ["a line with nothing", Buffer.from("PROXY \r\n")],
    ["a line of UDP", Buffer.from("PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n")],
  ])("%s", (_what, bytes) => {
    expect(readProxyHeader(bytes)).toMatchObject({ kind: "bad" });
  });

  test("any noise", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 300 }), (noise) => {
        fc.pre(noise[0] !== 13 && noise[0] !== 80);
        expect(readProxyHeader(Buffer.from(noise)).kind).toBe("bad");
      }),
    );
  });
});
