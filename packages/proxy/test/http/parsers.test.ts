/** The parsers by themselves: however the bytes are cut the result is the same, and no bytes are too odd for them. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Field } from "../../src/contract.ts";
import { ProxyRefusal } from "../../src/contract.ts";
import { bodyReader } from "../../src/http/body.ts";
import { lastChunk, pushChunk } from "../../src/http/chunked.ts";
import type { FieldMemory } from "../../src/http/fields.ts";
import { CHUNKED } from "../../src/http/fields.ts";
import { Malformed } from "../../src/http/grammar.ts";
import { HeadReader } from "../../src/http/head-reader.ts";
import { parseRequest } from "../../src/http/request.ts";
import { parseResponse } from "../../src/http/response.ts";

const LIMITS = { headBytes: 2048, headFields: 20 };

/** What a stream of messages reads as: texts of heads, bodies, trailers, or the word for why it was refused. */
interface Story {
  heads: string[];
  body: string;
  trailers: readonly Field[];
  rest: number;
  refused: string | undefined;
}

function pieces(bytes: Buffer, cuts: number[]): Buffer[] {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((to, index) => bytes.subarray(places[index], to));
}

function tell(error: unknown): string {
  if (error instanceof Malformed || error instanceof ProxyRefusal) return error.message;
  throw error;
}

/** Reads heads until the bytes are used up. */
function readHeads(chunks: Buffer[]): Story {
  const reader = new HeadReader(LIMITS.headBytes);
  const story: Story = { heads: [], body: "", trailers: [], rest: 0, refused: undefined };
  try {
    for (const chunk of chunks)
      for (let at = 0; at < chunk.length; ) {
        const end = reader.read(chunk, at);
        if (end === -1) break;
        expect(end).toBeGreaterThan(at);
        const text = reader.take();
        story.heads.push(text);
        at = end;
      }
  } catch (error) {
    story.refused = tell(error);
  }
  return story;
}

/** Reads one chunked body. */
function readBody(chunks: Buffer[]): Story {
  const reader = bodyReader(CHUNKED, LIMITS);
  const parts: Buffer[] = [];
  const story: Story = { heads: [], body: "", trailers: [], rest: 0, refused: undefined };
  try {
    for (const chunk of chunks) {
      const end = reader.done ? 0 : reader.read(chunk, 0, { data: (piece) => void parts.push(Buffer.from(piece)) });
      if (!reader.done) expect(end).toBe(chunk.length);
      else story.rest += chunk.length - end;
    }
    story.trailers = reader.trailers;
  } catch (error) {
    story.refused = tell(error);
  }
  story.body = Buffer.concat(parts).toString("latin1");
  return story;
}

const cuts = fc.array(fc.nat(5000), { maxLength: 30 });
const name = fc.stringMatching(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,20}$/);
const value = fc.stringMatching(/^[\x21-\x7e\x80-\xff]([\x20-\x7e\x80-\xff\t]{0,30}[\x21-\x7e\x80-\xff])?$/);
const field = fc
  .tuple(name, value)
  .filter(([each]) => !/^(content.length|transfer.encoding|host|connection|upgrade)$/i.test(each));
/** Bytes that come close to HTTP. */
const words =
  "GET |POST |/ |HTTP/1.1|HTTP/1.0|\r\n|\r|\n|Host: a|:| |\0|Content-Length: 3|Transfer-Encoding: chunked|3|0|;a|abc";
const nearly = fc
  .array(fc.oneof(fc.constantFrom(...words.split("|")), fc.uint8Array({ maxLength: 8 })), { maxLength: 60 })
  .map((parts) => Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : part))));

describe("heads", () => {
  test("read the same however they are cut", () => {
    const head = fc
      .array(field, { maxLength: 12 })
      .map((fields) => `GET /x HTTP/1.1\r\nHost: a\r\n${fields.map((each) => `${each.join(": ")}\r\n`).join("")}`);
    fc.assert(
      fc.property(fc.array(head, { maxLength: 5 }), cuts, (heads, places) => {
        const bytes = Buffer.from(heads.map((each) => `${each}\r\n`).join(""), "latin1");
        expect(readHeads(pieces(bytes, places))).toMatchObject({ heads, refused: undefined });
      }),
    );
  });

  test("that are nearly right are refused alike however they are cut", () => {
    fc.assert(
      fc.property(nearly, cuts, (bytes, places) => {
        expect(readHeads(pieces(bytes, places))).toEqual(readHeads([bytes]));
      }),
      { numRuns: 1000 },
    );
  });

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

  test("of any kind are parsed or refused, as requests and as responses", () => {
    fc.assert(
      fc.property(nearly, fc.boolean(), (bytes, begun) => {
        const text = `${begun ? "GET / HTTP/1.1\r\nHost: a\r\n" : ""}${bytes.toString("latin1")}\r\n`;
        for (const parse of [parseRequest, (each: string) => parseResponse(each, "GET", LIMITS)]) {
          try {
            parse(text, LIMITS);
          } catch (error) {
            expect(tell(error)).not.toBe("");
          }
        }
      }),
      { numRuns: 1000 },
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
        expect(readBody(pieces(bytes, places))).toEqual({
          heads: [],
          body: Buffer.concat(parts).toString("latin1"),
          trailers,
          rest,
          refused: undefined,
        });
      }),
    );
  });

  test("that are nearly right are refused alike however they are cut", () => {
    const start = fc.constantFrom("", "3\r\nabc\r\n", "3;x=y\r\nabc\r\n0\r\n", "0\r\nA: b\r\n");
    fc.assert(
      fc.property(start, nearly, cuts, (text, bytes, places) => {
        const whole = Buffer.concat([Buffer.from(text), bytes]);
        expect(readBody(pieces(whole, places))).toEqual(readBody([whole]));
      }),
      { numRuns: 1000 },
    );
  });
});
