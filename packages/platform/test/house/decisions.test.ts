/** Every decision record has the same shape and a row in the index. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const FOLDER = join(import.meta.dirname, "../../../../docs/decisions");
const HEADINGS = ["Status", "Context", "Decision", "Consequences", "Alternatives considered"];
/** Fits on one page. */
const MOST_LINES = 70;

const text = (file: string) => readFileSync(join(FOLDER, file), "utf8");
const PAGES = globSync("*.md", { cwd: FOLDER })
  .filter((file) => file !== "README.md")
  .sort();

describe.each(PAGES)("%s", (file) => {
  test("has the five headings, in order, on one page", () => {
    const headings = [...text(file).matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
    expect(headings).toEqual(HEADINGS);
    expect(text(file).split("\n").length).toBeLessThanOrEqual(MOST_LINES);
  });

  test("has a title with its own number", () => {
    expect(file).toMatch(/^\d{4}-[a-z0-9-]+\.md$/);
    expect(text(file)).toMatch(new RegExp(`^# ${file.slice(0, 4)}: \\S`));
  });

  test("has a row in the index, with its title and its status", () => {
    const title = /^# \d{4}: (.+)$/m.exec(text(file))?.[1] ?? "";
    const status = /^## Status\n\n(\w+)/m.exec(text(file))?.[1]?.toLowerCase() ?? "";
    expect(status).toMatch(/^(proposed|accepted|superseded)$/);
    expect(text("README.md")).toContain(`| [${file.slice(0, 4)}](${file}) | ${title} | ${status}`);
  });
});

test("the index lists each page once, in order, and the numbers have no gaps", () => {
  const rows = [...text("README.md").matchAll(/^\| \[(\d{4})\]\(([^)]+)\) \|/gm)];
  expect(rows.map(([, , file]) => file)).toEqual(PAGES);
  expect(rows.map(([, number]) => Number(number))).toEqual(PAGES.map((_, index) => index + 1));
});
