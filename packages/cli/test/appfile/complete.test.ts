/** Nothing of a file is dropped silently, and the document tells of every key. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { keysOf, MACHINE_FIELDS, SERVICE_FIELDS } from "@hibernaut/domain/fields";
import { parse, stringify } from "smol-toml";
import { describe, expect, test } from "vitest";
import { pathText } from "../../src/appfile/findings.ts";
import type { Path } from "../../src/appfile/positions.ts";
import { readAppFile } from "../../src/appfile/read.ts";

const FOLDER = join(import.meta.dirname, "files");
const STRANGER = "zzz_stranger";

type Table = Record<string, unknown>;

/** Every table of a document, with its path. */
function tablesOf(value: unknown, path: Path = []): [Path, Table][] {
  if (Array.isArray(value)) return value.flatMap((one: unknown, index) => tablesOf(one, [...path, index]));
  if (typeof value !== "object" || value === null || value instanceof Date) return [];
  const below = Object.entries(value).flatMap(([key, one]) => tablesOf(one, [...path, key]));
  return [[path, value as Table], ...below];
}

/** Tables whose keys the user names. */
function isFree(path: Path): boolean {
  const names = path.filter((part) => typeof part === "string");
  return ["env", "headers", "args"].includes(names.at(-1) ?? "") || (path.length === 1 && path[0] === "processes");
}

describe.each(readdirSync(FOLDER))("an unknown key anywhere in %s is reported", (name) => {
  const document = parse(readFileSync(join(FOLDER, name), "utf8").replace(/^\uFEFF/, ""));
  test.each(tablesOf(document).map(([path, table]) => [pathText(path), path, table] as const))(
    "at %j",
    (_, path, table) => {
      const { [STRANGER]: _none, ...before } = table;
      table[STRANGER] = 1;
      const text = stringify(document);
      for (const key of Object.keys(table)) delete table[key];
      Object.assign(table, before);
      if (isFree(path)) return;
      const said = readAppFile(text).findings.map((finding) => finding.path);
      const covering = [...path.keys()].map((length) => pathText(path.slice(0, length + 1)));
      const own = pathText([...path, STRANGER]);
      expect(
        said.some((one) => one === own || covering.includes(one)),
        `${own} in ${said.join(" ")}`,
      ).toBe(true);
    },
  );
});

test("the document tells of every key that is read", () => {
  const source = readdirSync(join(import.meta.dirname, "../../src/appfile"))
    .map((name) => readFileSync(join(import.meta.dirname, "../../src/appfile", name), "utf8"))
    .join("\n");
  const asked = [
    ...source.matchAll(
      /\.(?:string|boolean|booleanOr|integer|positive|seconds|megabytes|strings|choice|section|sections|raw)\(\s*"([\w-]+)"/g,
    ),
  ].map(([, key = ""]) => key);
  const described = [MACHINE_FIELDS, SERVICE_FIELDS].flatMap(keysOf).map(([, key]) => key);
  const keys = new Set([...asked, ...described]);
  expect(keys.size).toBeGreaterThan(50);
  const text = readFileSync(join(import.meta.dirname, "../../../../docs/app-file.md"), "utf8");
  const missing = [...keys].filter((key) => !new RegExp(`\\b${key}\\b`).test(text));
  expect(missing).toEqual([]);
});
