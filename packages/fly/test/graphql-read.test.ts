/** How a query of GraphQL is read, and why one cannot be. */
import { expect, test } from "vitest";
import { readQuery } from "../src/graphql/read.ts";

test.each([
  ["a directive", "{ app(name: shop) { name @include(if: true) } }", /^Directives are not read/],
  ["a fragment that is missing", "{ app { ...None } }", /^There is no fragment "None"/],
  ["a fragment of itself", "{ ...A } fragment A on Q { ...A }", /more than 15 fields deep/],
  [
    "fragments of fragments",
    `{ ...A } ${["A", "B", "C"].map((name, at) => nest(name, "BCD"[at] ?? "")).join(" ")} fragment D on Q { id }`,
    /500 fields/,
  ],
  ["two queries", "{ a } { b }", /^Only one query/],
  ["half a query", "{ app(name: ", /Unexpected <EOF>/],
  ["other signs", "{ app(name: %) { id } }", /Unexpected character: "%"/],
  ["half a text", '{ app(name: "shop) { id } }', /Unterminated string/],
  ["a sign in place of a name", "{ app(name: shop) { : } }", /Expected Name, found ":"/],
  ["nothing", " # a remark", /Unexpected <EOF>/],
  ["lists in lists", `{ app(name: ${"[".repeat(900)}${"]".repeat(900)}) { id } }`, /more than 1000 tokens/],
  ["fields in fields", `${"{ a ".repeat(300)}${"}".repeat(300)}`, /more than 15 fields deep/],
  ["more fields than any command asks for", manyOf("id", 600), /more than 1000 tokens/],
])("%s cannot be read, and it is said why", (_what, query, words) => {
  expect(() => readQuery(query, {})).toThrow(words);
});

test("values are read as they are written, and a variable that is not sent is undefined", () => {
  const query = `query Q($a: [Int!]! = [1], $b: String, $c: In = {x: 1}) {
    one: two(a: $a, b: $b, c: [1, -2.5, TRUE, true, null], d: {e: "say \\"hi\\"", f: """long"""}) { x, y }
  }`;
  const { kind, fields } = readQuery(query, { a: [7] });
  expect(kind).toBe("query");
  const plain = (name: string) => ({ name, as: name, args: {}, fields: undefined });
  expect(fields).toEqual([
    {
      ...{ name: "two", as: "one", fields: [plain("x"), plain("y")] },
      args: { a: [7], b: undefined, c: [1, -2.5, "TRUE", true, null], d: { e: 'say "hi"', f: "long" } },
    },
  ]);
});

/** A fragment with nothing in it but another one, many times. */
function nest(name: string, inner: string): string {
  return `fragment ${name} on Q { ${`...${inner} `.repeat(100)}}`;
}

function manyOf(field: string, count: number): string {
  return `{ ${Array.from({ length: count }, (_, at) => `a${at}: ${field}`).join(" ")} }`;
}
