/**
 * Our HTTP/1 parsers next to llhttp: what we accept it accepts too and understands alike, up to the message's last
 * byte, and what only we refuse we refuse for a reason that is listed. However a stream is cut, we read the same.
 *
 * @module-tag again
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CLASSES, compare, type Outcome } from "./compare.ts";
import { DIFFERENCES } from "./differences.ts";
import { mutatedRequests, mutatedResponses } from "./mutations.ts";
import { cutAt, readStream, type Stream } from "./reading.ts";
import { request, response } from "./taken.ts";

/** Inputs of each kind: ten seconds in all, and a minute on a busy host. A longer hunt sets the variable. */
const RUNS = Math.max(1000, Number(process.env.HIBERNAUT_FUZZ_RUNS ?? 16_000));
/** For one kind; a run takes a tenth of a millisecond on a slow core. */
const TIMEOUT_MS = 60_000 + 5 * RUNS;

/** Shares of the messages that must be met; what the sources yield is twice as much or more. */
const LEAST_SHARES: [Outcome["kind"], number][] = [
  ["both accept", 0.07],
  ["both refuse", 0.1],
  ["only llhttp accepts", 0.025],
  ["open", 0.001],
];

function latin1(text: string): Buffer {
  return Buffer.from(text, "latin1");
}

interface Tally {
  messages: number;
  kinds: Map<Outcome["kind"], number>;
  names: Set<string>;
}

/** Compares many streams, and counts what became of their messages. */
function hunt(streams: fc.Arbitrary<Stream>, sources: fc.Arbitrary<Buffer>): Tally {
  const tally: Tally = { messages: 0, kinds: new Map(), names: new Set() };
  const cuts = fc.array(fc.nat(1000), { maxLength: 5 });
  fc.assert(
    fc.property(streams, sources, cuts, (stream, bytes, places) => {
      for (const { kind, names } of compare(stream, bytes)) {
        tally.messages += 1;
        tally.kinds.set(kind, (tally.kinds.get(kind) ?? 0) + 1);
        for (const name of names) tally.names.add(name);
      }
      const whole = JSON.stringify(readStream(stream, [bytes]));
      const single = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
      for (const cut of [single, cutAt(bytes, places)])
        if (JSON.stringify(readStream(stream, cut)) !== whole) throw new Error(`It depends on the cuts: ${whole}`);
    }),
    { numRuns: RUNS },
  );
  return tally;
}

describe("a hunt for disagreements", () => {
  const requests = fc.constant<Stream>({ side: "request" });
  const responses = fc.constantFrom("GET", "GET", "HEAD").map((method): Stream => ({ side: "response", method }));
  const met = new Set<string>();

  test.each([
    ["requests", requests, mutatedRequests],
    ["responses", responses, mutatedResponses],
  ])(
    "%s",
    (_name, streams, sources) => {
      const { messages, kinds, names } = hunt(streams, sources);
      for (const [kind, least] of LEAST_SHARES) expect((kinds.get(kind) ?? 0) / messages, kind).toBeGreaterThan(least);
      for (const name of names) met.add(name);
    },
    TIMEOUT_MS,
  );

  test("meets nearly every class of refusals, and every difference", () => {
    // The rarest turn up once in some ten thousand inputs; each has an example below.
    const rare = CLASSES.filter(({ name }) => !met.has(name)).map(({ name }) => name);
    expect(rare.length, rare.join(", ")).toBeLessThanOrEqual(CLASSES.length / 5);
    for (const { name } of DIFFERENCES) expect(met).toContain(name);
  });
});

describe("only llhttp accepts", () => {
  test.each(CLASSES.flatMap(({ name, examples }) => examples.map((example) => [name, example] as const)))(
    "%s: %j",
    (name, example) => {
      expect(compare(example, latin1(example.text)).at(-1)).toEqual({ kind: "only llhttp accepts", names: [name] });
    },
  );
});

describe("both accept, and differ", () => {
  test.each(DIFFERENCES)("$name", ({ name, example }) => {
    expect(compare(example, latin1(example.text))[0]).toEqual({ kind: "both accept", names: [name] });
  });

  test.each([
    ["a method that llhttp does not know", request("BREW / HTTP/1.1\r\nHost: a\r\n\r\n")],
    ["a tab behind a length", request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1 \t\r\n\r\na")],
    ["a tab behind chunked", request("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\t \r\n\r\n0\r\n\r\n")],
    ["an absolute target", request("GET HTTP://B.test:81?x HTTP/1.1\r\nHost: a\r\n\r\n")],
    [
      "a length as a trailer",
      response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\ncontent-length: 4\r\n\r\n"),
    ],
  ])("%s, in other words", (_name, example) => {
    expect(compare(example, latin1(example.text))).toEqual([{ kind: "both accept", names: [] }]);
  });
});

/** What a hunt has found, and how it is understood now. */
describe("found before", () => {
  const chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

  test.each(["", "@", " a", "a ", "a = b", "a=@", 'a="', 'a="b"c', 'a="b" ', "a\x7f", "\xe9", "a;"])(
    "an invalid chunk extension: ;%s",
    (extension) => {
      const outcomes = compare(request(""), latin1(`${chunked}3;${extension}\r\nabc\r\n0\r\n\r\n`));
      expect(outcomes).toEqual([{ kind: "both refuse", names: [] }]);
    },
  );

  test.each(["a", "a=b", "a;b", 'a=""', 'a="\\"\t\xe9;";c=1'])("a chunk's extension that is one: ;%s", (extension) => {
    const outcomes = compare(request(""), latin1(`${chunked}3;${extension}\r\nabc\r\n0;${extension}\r\n\r\n`));
    expect(outcomes).toEqual([{ kind: "both accept", names: [] }]);
  });

  test("an empty Upgrade asks for nothing", () => {
    const bytes = latin1("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: \r\n\r\n");
    expect(compare(request(""), bytes)).toEqual([{ kind: "both accept", names: [] }]);
    expect(readStream(request(""), [bytes])[0]?.request?.upgrade).toBeUndefined();
    const answer = latin1("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade:\r\n\r\n");
    expect(readStream(response(""), [answer])[0]?.response?.upgrade).toBeUndefined();
  });
});
