/** What clients have added to requests of sandboxes: what they may say, and which of it counts. */
import { egressOf, injectedFor, withInjected } from "@hibernaut/domain/egress";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Refusal } from "../src/failure.ts";
import { addedHeadersIn } from "../src/life/rules.ts";

const headers = (own: Record<string, unknown>) => [{ transform: { headers: own } }];

test("of several rules for a name the last one counts, whatever the spelling", () => {
  const rules = [
    ...headers({ Authorization: "Bearer one", "X-Org": "a" }),
    {},
    ...headers({ authorization: "Bearer two" }),
  ];
  expect(addedHeadersIn({ "API.example.com": rules, "*.example.org": [] })).toEqual({
    "api.example.com": { authorization: "Bearer two", "x-org": "a" },
  });
  expect(addedHeadersIn({})).toBeUndefined();
});

test("what is for the name itself comes before what is for many, and the narrowest of these before the others", () => {
  const rules = withInjected(egressOf({}), {
    "*.example.com": "many",
    "api.example.com": "one",
    "*.eu.example.com": "some",
  });
  const found = (name: string) => rules && injectedFor(rules, name);
  expect(["API.example.com.", "x.example.com", "a.b.eu.example.com", "example.com", "example.org"].map(found)).toEqual([
    ...["one", "many", "some"],
    ...[undefined, undefined],
  ]);
});

test.each([
  ["a name of all names", { "*.com": headers({ a: "b" }) }, 400],
  ["an address", { "192.0.2.1": headers({ a: "b" }) }, 400],
  ["what makes a request what it is", { "api.example.com": headers({ Host: "evil.example.org" }) }, 400],
  ["two lines in one", { "api.example.com": headers({ a: "b\r\nc: d" }) }, 400],
  ["a header that cannot be one", { "api.example.com": headers({ "a b": "c" }) }, 400],
  ["more than servers accept", { "api.example.com": headers({ a: "b".repeat(7000) }) }, 400],
  [
    "more than a record should have",
    Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`a${n}.example.com`, headers({ a: "b".repeat(6000) })])),
    400,
  ],
  [
    "more names than there may be",
    Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`a${n}.example.com`, []])),
    400,
  ],
  ["an identity of E2B's cloud", { "api.example.com": headers({ a: "Bearer ${e2b.identity.tokens.aws}" }) }, 501],
])("%s is refused", (_what, rules, status) => {
  expect(() => addedHeadersIn(rules)).toThrow(
    expect.objectContaining({ status, message: expect.stringMatching(/\w/) }),
  );
});

test("whatever a client sends is read, or refused with a sentence", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.json(),
        fc.json().map((text) => `{"api.example.com":[{"transform":{"headers":${text}}}]}`),
      ),
      (text) => {
        try {
          const added = addedHeadersIn(JSON.parse(text));
          for (const [name, value] of Object.values(added ?? {}).flatMap(Object.entries)) {
            expect(name).toBe(name.toLowerCase());
            expect(value).not.toMatch(/[\r\n]/);
          }
        } catch (error) {
          expect(error).toBeInstanceOf(Refusal);
        }
      },
    ),
  );
});
