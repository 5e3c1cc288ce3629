import { readFileSync } from "node:fs";
import { ERROR_STATUS } from "@hibernaut/domain/errors";
import { expect, test } from "vitest";

const text = readFileSync(new URL("../../../docs/errors.md", import.meta.url), "utf8");

test("the page on errors has exactly the registry's codes, each with its status", () => {
  const sections = [...text.matchAll(/^## (\w+)\n\nStatus (\d+)\. \S/gm)].map(([, code, status]) => [
    code,
    Number(status),
  ]);
  expect(Object.fromEntries(sections)).toEqual(ERROR_STATUS);
  // What the proxy answers by itself has a section of its own, held to its code elsewhere.
  expect(text.match(/^## [a-z_]+$/gm)).toHaveLength(sections.length);
});
