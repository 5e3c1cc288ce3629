import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { parse } from "smol-toml";
import { describe, expect, test } from "vitest";
import { findPositions, type Path } from "../../src/appfile/positions.ts";

const decode = (quoted: string) => Object.keys(parse(`${quoted} = 0`))[0] ?? "";

/** Every path of a parsed document. */
function pathsOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== "object" || value === null || value instanceof Date) return [path];
  const entries: [string | number, unknown][] = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return [...(path.length > 0 ? [path] : []), ...entries.flatMap(([key, one]) => pathsOf(one, [...path, key]))];
}

/** Fails unless the key of each path is at the reported position. */
function checkAll(text: string): void {
  const positions = findPositions(text, decode);
  const lines = text.split("\n");
  for (const path of pathsOf(parse(text))) {
    const position = positions.exact(path);
    const here = lines[(position?.line ?? 0) - 1]?.slice((position?.column ?? 0) - 1) ?? "";
    const [, quoted, bare = ""] = /^(?:("(?:\\.|[^"\\])*"|'[^']*')|([\w-]+))?/.exec(here) ?? [];
    const last = path.at(-1) ?? "";
    const label = `${JSON.stringify(path)} in ${JSON.stringify(text)}`;
    // An element is at its value, and a table of an array of tables at its header.
    if (typeof last === "number") expect(here, label).toMatch(/^\S/);
    else expect(quoted === undefined ? bare : decode(quoted), label).toBe(last);
  }
}

type Tree = string | number | boolean | Tree[] | { [key: string]: Tree };

const key = fc.oneof(
  fc.constantFrom("a", "b", "key", "1", "a.b", "", "ä", 'q"q', "it's", "[x]", "# no", "a = 1", "back\\slash", "-"),
  fc.string({ maxLength: 4, unit: "grapheme-ascii" }),
);
const { tree } = fc.letrec<{ tree: Tree; table: { [key: string]: Tree } }>((tie) => ({
  tree: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom<Tree>("text", "[a]", "x = 1 # no", 'say "hi"', "'''", '"""', "two\nlines\n[b]\n", 1, -2.5, true),
    fc.array(tie("tree"), { maxLength: 3 }),
    tie("table"),
  ),
  table: fc.dictionary(key, tie("tree"), { maxKeys: 3 }),
}));

/** A document in a style that `pick` chooses at every turn. */
function render(table: { [key: string]: Tree }, pick: (choices: number) => number): string {
  const lines: string[] = [];
  const write = (content: { [key: string]: Tree }, header: string[]): void => {
    // Values go first: after a header they would belong to it.
    const later: (() => void)[] = [];
    for (const [name, value] of Object.entries(content)) {
      const path = [...header, keyText(name, pick)];
      const isTables = Array.isArray(value) && value.length > 0 && value.every(isTable);
      if (isTable(value) && pick(2) === 0) later.push(() => open(`[${path.join(" . ")}]`, value, path));
      else if (isTables && pick(2) === 0)
        later.push(() =>
          (value as { [key: string]: Tree }[]).forEach((one) => open(`[[${path.join(".")}]]`, one, path)),
        );
      else
        lines.push(
          `${["", "  ", "\t"][pick(3)]}${path.at(-1)} = ${valueText(value, pick)}${["", " # x = [1"][pick(2)]}`,
        );
    }
    for (const one of later) one();
  };
  const open = (line: string, content: { [key: string]: Tree }, path: string[]) => {
    lines.push(["", "# [comment]\n"][pick(2)] + line);
    write(content, path);
  };
  write(table, []);
  return lines.join(["\n", "\r\n", "\n\n"][pick(3)]);
}

function isTable(value: Tree): value is { [key: string]: Tree } {
  return typeof value === "object" && !Array.isArray(value);
}

function keyText(name: string, pick: (choices: number) => number): string {
  if (/^[\w-]+$/.test(name) && pick(3) > 0) return name;
  return /^[^'\n]*$/.test(name) && pick(2) === 0 ? `'${name}'` : JSON.stringify(name);
}

function valueText(value: Tree, pick: (choices: number) => number): string {
  const gap = ["", " "][pick(2)];
  if (Array.isArray(value)) {
    const space = ["", " ", "\n  # [comment]\n"][pick(3)];
    return `[${space}${value.map((one) => valueText(one, pick)).join(`${space},${gap}`)}${space}]`;
  }
  if (isTable(value))
    return `{${gap}${Object.entries(value)
      .map(([name, one]) => `${keyText(name, pick)}${gap}=${gap}${valueText(one, pick)}`)
      .join(`,${gap}`)}${gap}}`;
  if (typeof value !== "string" || pick(2) === 0) return JSON.stringify(value);
  return value.includes("'''") ? JSON.stringify(value) : `'''${value}'''`;
}

describe("every key of a document is found at its position", () => {
  test.each(readdirSync(join(import.meta.dirname, "files")))("%s", (name) => {
    checkAll(readFileSync(join(import.meta.dirname, "files", name), "utf8").replace(/^\uFEFF/, ""));
  });

  test.each([
    ["headers below an array of tables", "[[a]]\n[[a.b]]\nx = 1\n[[a.b]]\n[a.b.c]\ny = 2\n[[a]]\n[a.d]\nz = 3\n"],
    ["dotted keys", "a.b.c = 1\na.'x.y'.z = 2\n[t]\nq . r = 3\n"],
    ["quotes at the end of long strings", `a = """x"""""\nb = '''y'''''\nc = """\\""""\nd = 1\n`],
    ["dates with a space", "a = 1979-05-27 07:32:00Z # now\nb = [1979-05-27 07:32:00, 07:32:00]\n"],
    ["inline tables over lines", "a = {\n  b = 1, # one\n  c = { d = 2 },\n}\n"],
    ["a table opened after its child", "[a.b]\nx = 1\n[a]\ny = 2\n"],
  ])("%s", (_name, text) => checkAll(text));

  test("whatever it is and however it is written", () => {
    const table = tree.filter((one) => isTable(one));
    fc.assert(
      fc.property(table, fc.infiniteStream(fc.nat(5)), (document, stream) => {
        const pick = (choices: number) => (stream.next().value ?? 0) % choices;
        const text = render(document, pick);
        // What the parser does not take has no positions to find.
        if (isAccepted(text)) checkAll(text);
        else expect(text).toMatch(/__proto__|\r(?!\n)/);
      }),
      { numRuns: 500 },
    );
  });
});

function isAccepted(text: string): boolean {
  try {
    parse(text);
    return true;
  } catch {
    return false;
  }
}

test("a missing key is near its table", () => {
  const positions = findPositions("a = 1\n[b.c]\n  d = 2\n", decode);
  expect(positions.near(["b", "c", "d"])).toEqual({ line: 3, column: 3 });
  expect(positions.near(["b", "c", "x", "y"])).toEqual({ line: 2, column: 4 });
  expect(positions.near(["x"])).toEqual({ line: 1, column: 1 });
});

test("a table that is opened several times is where it was first named", () => {
  const positions = findPositions("[a.b]\n[a.c]\n[[t]]\n[[t]]\n", decode);
  expect(positions.exact(["a"])).toEqual({ line: 1, column: 2 });
  expect(positions.exact(["t"])).toEqual({ line: 3, column: 3 });
  expect(positions.exact(["t", 1])).toEqual({ line: 4, column: 3 });
});
