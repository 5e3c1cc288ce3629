/** What messages are made of, by the grammar of RFC 9112: lines and fields, each of which may turn out a little wrong. */
import fc from "fast-check";

/** How often a part is wrong: of messages of twenty parts, every third is all right. */
const ODD = 1 / 20;

/** One of the usual, rarely one of the odd. */
export function mostly(usual: fc.Arbitrary<string>, odd: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.oneof({ weight: 1 / ODD - 1, arbitrary: usual }, { weight: 1, arbitrary: odd });
}

export function words(text: string): fc.Arbitrary<string> {
  return fc.constantFrom(...text.split("|"));
}

export function joined(...parts: (string | fc.Arbitrary<string>)[]): fc.Arbitrary<string> {
  return fc
    .tuple(...parts.map((part) => (typeof part === "string" ? fc.constant(part) : part)))
    .map((each) => each.join(""));
}

export function several(part: fc.Arbitrary<string>, maxLength: number): fc.Arbitrary<string> {
  return fc.array(part, { maxLength }).map((each) => each.join(""));
}

/** Any bytes. */
export const bytes = fc.uint8Array({ maxLength: 12 }).map((each) => Buffer.from(each).toString("latin1"));
export const visible = fc.stringMatching(/^[\x21-\x7e]{0,12}$/);

export const eol = mostly(fc.constant("\r\n"), words("\n|\r|\r\r\n|\n\r|\r\n |"));
export const blank = mostly(fc.constant(" "), words("  |\t|| \t|\v"));
export const ows = fc.oneof({ weight: 6, arbitrary: fc.constant(" ") }, { weight: 2, arbitrary: words("|\t|  | \t ") });

const options = fc
  .array(words("close|keep-alive|Upgrade|CLOSE|x|TE||close\t|\tkeep-alive|close x|keep-alive;x|closed"), {
    minLength: 1,
    maxLength: 3,
  })
  .chain((each) => words(", |,| ,|,\t").map((comma) => each.join(comma)));
const fieldName = mostly(
  fc.oneof(words("X-A|Accept|cookie|x_b"), fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,8}$/)),
  fc.oneof(words("|X A|X\t|é|X:"), bytes),
);
const fieldValue = mostly(
  fc.stringMatching(/^[\x20-\x7e\x80-\xff\t]{0,12}$/),
  fc.oneof(words("\0|\x7f|a\r\n b|a\nb|a\rb|\v"), bytes),
);
const colon = mostly(fc.constant(":"), words(" :||::|\t:"));
export const field = joined(fieldName, colon, ows, fieldValue, ows, eol);
const connection = joined("Connection", colon, ows, options, ows, eol);
const upgrade = joined("Upgrade: ", words("websocket|h2c|x, h2c|foo/2||h2c-14|xh2c"), eol);
export const otherFields = several(
  fc.oneof({ weight: 5, arbitrary: field }, { weight: 2, arbitrary: connection }, { weight: 1, arbitrary: upgrade }),
  4,
);
