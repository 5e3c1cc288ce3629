/** What a browser loads before it shows anything. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const DIST = join(import.meta.dirname, "../dist");
/** Compressed. On a slow mobile connection, that is a second. */
const MOST_KB = 180;

const page = readFileSync(join(DIST, "index.html"), "utf8");
const first = [...page.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path = ""]) => path);

test(`the first view is at most ${MOST_KB} KB, compressed`, () => {
  const scripts = first.filter((path) => /\.(js|css)$/.test(path));
  expect(scripts.length).toBeGreaterThanOrEqual(2);
  const sizes = ["/index.html", ...scripts].map((path) => {
    const compressed = statSync(join(DIST, `${path}.gz`), { throwIfNoEntry: false });
    return (compressed ?? statSync(join(DIST, path))).size;
  });
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(MOST_KB * 1024);
});

test("plots are not part of the first view", () => {
  const scripts = readdirSync(join(DIST, "assets")).filter((name) => name.endsWith(".js"));
  const withPlots = scripts.filter((name) => readFileSync(join(DIST, "assets", name), "utf8").includes("u-over"));
  expect(withPlots.length).toBeGreaterThan(0);
  for (const name of withPlots) expect(first).not.toContain(`/assets/${name}`);
});

test("the page names files of its own origin only, and has neither scripts nor styles in it", () => {
  expect(page).not.toMatch(/<script(?![^>]*\bsrc=)/);
  expect(page).not.toMatch(/<style|\bstyle=|\bon\w+=/);
  for (const path of first) expect(path).toMatch(/^\/assets\/[\w.-]+$/);
});
