import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseChallenges } from "../src/registry/challenge.ts";

const read = (header: string) =>
  parseChallenges(header).map(({ scheme, parameters }) => [scheme, Object.fromEntries(parameters)]);

describe("challenges that registries send", () => {
  test.each([
    ['Basic realm="test"', [["basic", { realm: "test" }]]],
    ["BASIC REALM=test", [["basic", { realm: "test" }]]],
    [
      'Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull,push"',
      [
        [
          "bearer",
          {
            realm: "https://auth.docker.io/token",
            service: "registry.docker.io",
            scope: "repository:a/b:pull,push",
          },
        ],
      ],
    ],
    [
      'Basic realm="a \\"b\\" c", charset="UTF-8", Bearer realm=https://x.example/token?a=1',
      [
        ["basic", { realm: 'a "b" c', charset: "UTF-8" }],
        ["bearer", { realm: "https://x.example/token?a=1" }],
      ],
    ],
    [
      "Negotiate, Basic realm=x",
      [
        ["negotiate", {}],
        ["basic", { realm: "x" }],
      ],
    ],
    [
      "Negotiate abc==, Basic realm=x",
      [
        ["negotiate", {}],
        ["basic", { realm: "x" }],
      ],
    ],
    ["Basic", [["basic", {}]]],
    ["", []],
    [",, ,", []],
    ['Bearer realm="never closed', [["bearer", {}]]],
    [
      'Bearer __proto__="x", constructor="y"',
      [
        [
          "bearer",
          Object.fromEntries([
            ["__proto__", "x"],
            ["constructor", "y"],
          ]),
        ],
      ],
    ],
  ])("%s", (header, challenges) => {
    expect(read(header)).toEqual(challenges);
  });
});

describe("any header", () => {
  const token = fc.stringMatching(/^[a-zA-Z][a-zA-Z0-9-]{0,10}$/);
  const value = fc.string({ unit: "binary-ascii", maxLength: 30 });
  const challenge = fc.record({
    scheme: token,
    parameters: fc.uniqueArray(fc.tuple(token, value), {
      minLength: 1,
      maxLength: 5,
      selector: ([name]) => name.toLowerCase(),
    }),
  });

  test("that is well-formed is parsed as it was written, with or without spaces and commas", () => {
    fc.assert(
      fc.property(
        fc.array(challenge, { maxLength: 4 }),
        fc.constantFrom(",", ", ", " , ", ",,"),
        fc.constantFrom("=", " = "),
        (challenges, comma, equals) => {
          const quote = (text: string) => `"${text.replace(/[\\"]/g, "\\$&")}"`;
          const header = challenges
            .map(({ scheme, parameters }) => {
              const list = parameters.map(([name, text]) => `${name}${equals}${quote(text)}`);
              return `${scheme} ${list.join(comma)}`;
            })
            .join(comma);
          const expected = challenges.map(({ scheme, parameters }) => [
            scheme.toLowerCase(),
            Object.fromEntries(parameters.map(([name, text]) => [name.toLowerCase(), text])),
          ]);
          // A line break cannot be in a header.
          if (!/[\r\n]/.test(header)) expect(read(header)).toEqual(expected);
        },
      ),
      { numRuns: 1000 },
    );
  });

  test("is parsed quickly and never throws", () => {
    const piece = fc.constantFrom("Bearer ", "Basic", "realm", "=", '"', "\\", ",", " ", "a", "é", "==", "\t");
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ maxLength: 200 }),
          fc.array(piece, { maxLength: 60 }).map((all) => all.join("")),
        ),
        (header) => {
          for (const { scheme } of parseChallenges(header)) expect(scheme).toBe(scheme.toLowerCase());
        },
      ),
      { numRuns: 3000 },
    );
    const start = performance.now();
    for (const header of [
      'a="'.repeat(6000),
      "a ".repeat(8000),
      `a b=${"\\".repeat(16_000)}`,
      "a=".repeat(8000),
      " ".repeat(16_000),
    ])
      parseChallenges(header);
    expect(performance.now() - start).toBeLessThan(500);
  });
});
