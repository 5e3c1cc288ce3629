/** Messages of the grammar, a little broken: a few bytes more, fewer or other ones, or the half of another message. */
import fc from "fast-check";
import { grammarRequests, grammarResponses } from "./grammar.ts";

/** What parsers disagree about. */
const SNIPPETS = [
  ...'\r|\n|\r\n| |\t|\0|\v|\x7f|\x80|\xff|:|,|;|=|"|\\|#|?|*|/|-|_|+|0|00|1|9|a|F|G|x|.|@|[|]|close|chunked'.split(
    "|",
  ),
  ..."\r\n\r\n|\n\n|\r\n |\r\n\t| HTTP/1.1|HTTP/1.0|http://b.test|upgrade|keep-alive|0\r\n\r\n|3\r\nabc\r\n|;a=b".split(
    "|",
  ),
  ..."Content-Length|Transfer-Encoding|Connection|Upgrade|Host|Trailer".split("|").map((name) => `\r\n${name}: `),
  "\r\nContent-Length: 3",
  "\r\nTransfer-Encoding: chunked",
  "\r\nConnection: close",
  "\r\nX-A: b".repeat(10),
  "x".repeat(1000),
];

type Change = (bytes: Buffer) => Buffer;

function splice(bytes: Buffer, at: number, gone: number, added: Uint8Array): Buffer {
  return Buffer.concat([bytes.subarray(0, at), added, bytes.subarray(at + gone)]);
}

const place = fc.nat(10_000);
const added = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...SNIPPETS).map((text) => Buffer.from(text, "latin1")) },
  { weight: 1, arbitrary: fc.uint8Array({ minLength: 1, maxLength: 3 }).map((bytes) => Buffer.from(bytes)) },
);

const insertOrReplace = fc.tuple(place, fc.nat(2), added).map(
  ([at, gone, more]): Change =>
    (bytes) =>
      splice(bytes, at % (bytes.length + 1), gone, more),
);
const flip = fc.tuple(place, fc.nat(7)).map(
  ([at, bit]): Change =>
    (bytes) => {
      const index = at % (bytes.length + 1);
      return splice(bytes, index, 1, Buffer.from([(bytes[index] ?? 0) ^ (1 << bit)]));
    },
);
const remove = fc.tuple(place, fc.integer({ min: 1, max: 12 })).map(
  ([at, gone]): Change =>
    (bytes) =>
      splice(bytes, at % (bytes.length + 1), gone, Buffer.alloc(0)),
);
const duplicate = fc.tuple(place, fc.integer({ min: 1, max: 40 })).map(
  ([at, length]): Change =>
    (bytes) => {
      const index = at % (bytes.length + 1);
      return splice(bytes, index, 0, bytes.subarray(index, index + length));
    },
);
const cutOff = place.map(
  (at): Change =>
    (bytes) =>
      bytes.subarray(0, at % (bytes.length + 1)),
);

/** Streams of bytes that began as these messages. */
function mutated(message: fc.Arbitrary<Buffer>): fc.Arbitrary<Buffer> {
  const crossed = fc
    .tuple(message, place, message, place)
    .map(([left, to, right, from]) =>
      Buffer.concat([left.subarray(0, to % (left.length + 1)), right.subarray(from % (right.length + 1))]),
    );
  const change = fc.oneof(
    { weight: 6, arbitrary: insertOrReplace },
    { weight: 2, arbitrary: flip },
    { weight: 2, arbitrary: remove },
    { weight: 1, arbitrary: duplicate },
    { weight: 1, arbitrary: cutOff },
  );
  return fc
    .tuple(
      fc.oneof({ weight: 4, arbitrary: message }, { weight: 1, arbitrary: crossed }),
      fc.array(change, { maxLength: 3 }),
    )
    .map(([bytes, changes]) => changes.reduce<Buffer>((each, apply) => apply(each), bytes));
}

export const mutatedRequests = mutated(grammarRequests);
export const mutatedResponses = mutated(grammarResponses);
