/** What the words of `machine cp` and `machine forward` mean. */
import { describe, expect, test } from "vitest";
import { readEnds } from "../src/copy/ends.ts";
import { readForward } from "../src/forwarded-port.ts";

describe("the words of `machine cp`", () => {
  const here = (path: string) => ({ at: "here", path });
  const there = (machine: string | undefined, path: string) => ({ at: "machine", machine, path });
  test.each([
    ["a", "id:/b", here("a"), there("id", "/b")],
    ["web-2:log", ".", there("web-2", "/log"), here(".")],
    ["-", ":/b", { at: "stream" }, there(undefined, "/b")],
    ["./a:b", "id:/", here("./a:b"), there("id", "/")],
  ])("%s %s", (fromWord, toWord, from, to) => {
    expect(readEnds(fromWord, toWord)).toEqual({ into: to.at === "machine", from, to });
  });

  test.each([
    ["a", "b", /Neither path/],
    ["x:/a", "y:/b", /Both paths/],
    ["", "y:/b", /empty/],
    ["a", "id:", /has no path/],
  ])("%j %j is refused", (from, to, why) => {
    expect(() => readEnds(from, to)).toThrow(why);
  });
});

test("the words of `machine forward`", () => {
  const ports = [{ here: 5432, there: 5432 }];
  expect(readForward(["5432"])).toEqual({ machine: undefined, ports });
  expect(readForward(["db", "5432"])).toEqual({ machine: "db", ports });
  expect(readForward(["0:80", "1:2"]).ports).toEqual([
    { here: 0, there: 80 },
    { here: 1, there: 2 },
  ]);
  for (const words of [[], ["db"], ["db", "80:0"], ["80", "x"], ["70000", "70000:1"]])
    expect(() => readForward(words)).toThrow(/port/i);
});
