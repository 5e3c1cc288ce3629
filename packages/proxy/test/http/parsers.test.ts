/** The parsers by themselves: however the bytes are cut the result is the same, and no bytes are too odd for them. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Field, ProxyRefusal } from "../../src/contract.ts";
import { bodyReader } from "../../src/http/body.ts";
import { lastChunk, pushChunk } from "../../src/http/chunked.ts";
import { CHUNKED, type FieldMemory } from "../../src/http/fields.ts";
import { Malformed } from "../../src/http/grammar.ts";
import { HeadReader } from "../../src/http/head-reader.ts";
import { parseRequest } from "../../src/http/request.ts";
import { parseResponse } from "../../src/http/response.ts";
import { mutatedRequests, mutatedResponses } from "../differential/mutations.ts";
import { cutAt, readStream, type Stream } from "../differential/reading.ts";

const LIMITS = { headBytes: 2048, headFields: 20 };

function tell(error: unknown): string {
  if (error instanceof Malformed || error instanceof ProxyRefusal) return error.message;
  throw error;
}

const cuts = fc.array(fc.nat(5000), { maxLength: 30 });
const name = fc.stringMatching(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,20}$/);
const value = fc.stringMatching(/^[\x21-\x7e\x80-\xff]([\x20-\x7e\x80-\xff\t]{0,30}[\x21-\x7e\x80-\xff])?$/);
const field = fc
  .tuple(name, value)
  .filter(([each]) => !/^(content.length|transfer.encoding|host|connection|upgrade)$/i.test(each));

describe("streams of messages", () => {
  const streams: [string, Stream, fc.Arbitrary<Buffer>][] = [
    ["requests", { side: "request" }, mutatedRequests],
    ["responses", { side: "response", method: "GET" }, mutatedResponses],
  ];

  test.each(streams)("of %s read the same however they are cut, whole or refused", (_name, stream, sources) => {
    fc.assert(
      fc.property(sources, cuts, (bytes, places) => {
        const [cut, whole] = [cutAt(bytes, places), [bytes]].map((each) => JSON.stringify(readStream(stream, each)));
        expect(cut).toBe(whole);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("heads", () => {
  test("give back their fields", () => {
    fc.assert(
      fc.property(fc.array(field, { maxLength: 15 }), (fields) => {
        const text = `GET /x HTTP/1.1\r\nHost: a\r\n${fields.map(([key, each]) => `${key}:\t ${each} \r\n`).join("")}`;
        const found = parseRequest(text, LIMITS).fields.slice(1);
        expect(found.map((each) => [each.name, each.value])).toEqual(fields);
        expect(found.map((each) => each.key)).toEqual(fields.map(([key]) => key.toLowerCase()));
      }),
    );
  });

  test("that follow others on a connection are parsed as if they were the first", () => {
    const head = fc.array(
      fc.constantFrom("A: 1", "A: 2", "b: 1", "Content-Length: 3", `C: ${"c".repeat(3000)}`, "d d: 1"),
    );
    fc.assert(
      fc.property(fc.array(head, { maxLength: 8 }), (heads) => {
        const [requests, responses] = [0, 0].map((): FieldMemory => ({ text: "", fields: [] }));
        const outcome = (parse: () => unknown) => {
          try {
            return parse();
          } catch (error) {
            return tell(error);
          }
        };
        for (const lines of heads) {
          const fields = lines.map((line) => `${line}\r\n`).join("");
          const [asked, answered] = [`GET / HTTP/1.1\r\nHost: a\r\n${fields}`, `HTTP/1.1 200 OK\r\n${fields}`];
          expect(outcome(() => parseRequest(asked, LIMITS, requests))).toEqual(
            outcome(() => parseRequest(asked, LIMITS)),
          );
          expect(outcome(() => parseResponse(answered, "GET", LIMITS, responses))).toEqual(
            outcome(() => parseResponse(answered, "GET", LIMITS)),
          );
        }
      }),
    );
  });

  test("one byte after the other cost no more than linear time", () => {
    const reader = new HeadReader(1_000_000);
    const byte = Buffer.from("a");
    const begun = performance.now();
    for (let count = 0; count < 500_000; count += 1) reader.read(byte, 0);
    // 50 ms on two slow cores; copying what there is for every byte would take minutes.
    expect(performance.now() - begun).toBeLessThan(3000);
  });
});

describe("chunked bodies", () => {
  const payload = fc.array(fc.uint8Array({ minLength: 1, maxLength: 6000 }), { maxLength: 6 });

  function encoded(parts: Uint8Array[], trailers: Field[]): Buffer {
    const out: Buffer[] = [];
    const to = { push: (part: string | Buffer) => out.push(Buffer.from(part as string, "latin1")) > 0 };
    for (const part of parts) pushChunk(to, Buffer.from(part));
    to.push(lastChunk(trailers));
    return Buffer.concat(out);
  }

  test("come out as they went in, however they are cut", () => {
    fc.assert(
      fc.property(payload, fc.array(field, { maxLength: 4 }), fc.nat(20), cuts, (parts, fields, rest, places) => {
        const trailers = fields.map(([key, each]) => ({ name: key, key: key.toLowerCase(), value: each }));
        const bytes = Buffer.concat([encoded(parts, trailers), Buffer.alloc(rest, "x")]);
        const reader = bodyReader(CHUNKED, LIMITS);
        const read: Buffer[] = [];
        let left = 0;
        for (const piece of cutAt(bytes, places)) {
          const data = (part: Buffer) => void read.push(Buffer.from(part));
          left += piece.length - (reader.done ? 0 : reader.read(piece, 0, { data }));
        }
        const body = Buffer.concat(read).equals(Buffer.concat(parts));
        expect({ body, trailers: reader.trailers, left }).toEqual({ body: true, trailers, left: rest });
      }),
    );
  });
});
