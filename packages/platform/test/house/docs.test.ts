/** The documents say what the code does, as far as a program can tell. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { STATES } from "@hibernaut/domain/machine";
import { withSettingTables } from "@hibernaut/settings/document";
import { describe, expect, test } from "vitest";
import { NOUNS } from "../../../cli/src/commands.ts";
import { COMMANDS, OUTCOMES, REMARKS } from "../../../machines/src/decide/index.ts";
import { REFUSALS } from "../../../proxy/src/http/refusals.ts";

const ROOT = join(import.meta.dirname, "../../../..");
const SRC = join(ROOT, "packages/platform/src");
const API = join(ROOT, "packages/api/src");
const PROXY = join(ROOT, "packages/proxy/src");

const DOCUMENTS = globSync(["*.md", "{docs,bench,packages/*/src}/**/*.md", "{packages,services,examples}/*/*.md"], {
  cwd: ROOT,
}).sort();
const text = (file: string) => readFileSync(join(ROOT, file), "utf8");

/** The part of a document below a heading. */
function section(file: string, heading: string): string {
  const [, after = ""] = text(file).split(`\n## ${heading}\n`);
  return after.split("\n## ", 1)[0] ?? "";
}

/** The code in the first cells of a table's rows. */
function firstCells(part: string): string[] {
  const cells = [...part.matchAll(/^\| ([^|]+) \|/gm)].map(([, cell = ""]) => cell);
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, word = ""]) => word));
}

test("there are documents to check", () => {
  expect(DOCUMENTS).toEqual(expect.arrayContaining(["README.md", "ARCHITECTURE.md", "docs/machines.md"]));
});

describe("settings", () => {
  test("the tables of settings.md are the ones that `npm run build` makes", () => {
    expect(withSettingTables(text("docs/settings.md"))).toBe(text("docs/settings.md"));
  });

  test("no document names a variable that does not exist", () => {
    const sources = globSync("{packages,scripts,examples}/**/*.{ts,mjs,js}", {
      cwd: ROOT,
      exclude: (name) => ["node_modules", "dist", ".build", "test"].includes(name),
    });
    const code = sources.map(text).join("\n");
    for (const file of DOCUMENTS) {
      for (const [name] of text(file).matchAll(/\bHIBERNAUT_[A-Z][A-Z_]*[A-Z]\b/g)) {
        // What a machine is told is made of a prefix and a name.
        const known = code.includes(name) || code.includes(` ${name.replace("HIBERNAUT_", "")}:`);
        expect(known, `${name} in ${file}`).toBe(true);
      }
    }
  });
});

describe("machines", () => {
  test("every reason of a start is explained, and no other", () => {
    const found = new Set(["snapshot"]);
    for (const file of globSync("{hypervisor,machines,snapshots}/src/**/*.ts", {
      cwd: join(ROOT, "packages"),
    })) {
      const code = text(join("packages", file));
      const words = [
        ...code.matchAll(/\bcoldReason: "(\w+)"/g),
        ...code.matchAll(/\bLOST = "(\w+)"/g),
        ...code.matchAll(/["`](\w+_\w+): /g),
        ...code.matchAll(/\["(\w+_changed)"/g),
      ];
      for (const [, word = ""] of words) found.add(word);
    }
    expect(found.size).toBeGreaterThan(15);
    const part = section("docs/machines.md", "Reasons for the last start");
    expect(part).toContain("`snapshot`");
    expect(["snapshot", ...firstCells(part)].sort()).toEqual([...found].sort());
  });

  test("every state is explained", () => {
    expect(firstCells(section("docs/machines.md", "States")).sort()).toEqual([...STATES].sort());
  });

  test("every event is explained", () => {
    const events = ["create", ...COMMANDS, ...OUTCOMES, ...REMARKS];
    expect(firstCells(section("docs/machines.md", "Events")).sort()).toEqual(events.sort());
  });
});

test("every command that a document shows exists", () => {
  const known = new Set(
    NOUNS.flatMap(({ name, commands, nouns = [] }) =>
      [...commands, ...nouns].map((below) => `${name} ${below.name}`.trim()),
    ),
  );
  const tops = new Set(
    NOUNS.flatMap(({ name, commands }) => (name === "" ? commands.map((command) => command.name) : name)),
  );
  let shown = 0;
  for (const file of DOCUMENTS) {
    const blocks = [...text(file).matchAll(/`[^`\n]*`|^ {4}.*$/gm)].map(([block]) => block);
    for (const block of blocks) {
      for (const [, noun = "", verb = ""] of block.matchAll(/\b(?:hibernaut|hibernaut\.js) ([a-z]+)(?: ([a-z]+))?/g)) {
        if (!tops.has(noun)) continue; // `useradd ... hibernaut`, `cd hibernaut && npm ...`
        const command = known.has(noun) ? noun : `${noun} ${verb}`;
        expect(known.has(command), `\`hibernaut ${command}\` in ${file}`).toBe(true);
        shown += 1;
      }
    }
  }
  expect(shown).toBeGreaterThan(20);
});

describe("commands have one form", () => {
  const OTHERS = [
    /\bnpx hibernaut\b/,
    /\.bin\/(hibernaut|hib|node)\b/,
    /\bhibernaut\.js\b/,
    /\bcli\/bin\b/,
    /\bnode \S+\.ts\b/,
  ];
  /** What to do without a link, said once. */
  const EXCEPT = "Without a link, `npx hibernaut` works in this directory.";

  test.each(DOCUMENTS)("in %s", (file) => {
    const said = text(file).replace(file === "README.md" ? EXCEPT : "", "");
    for (const other of OTHERS) expect(said).not.toMatch(other);
  });

  test("in what the programs say", () => {
    const files = globSync(["packages/*/{src,bin}/**/*.{ts,js}", "scripts/**/*.mjs"], { cwd: ROOT });
    expect(files.length).toBeGreaterThan(100);
    // The end of the tour looks first whether there is a link.
    const others = files.filter((file) => file !== "scripts/lib/invitation.mjs");
    for (const file of others) expect(text(file), file).not.toContain("npx hibernaut");
  });
});

test("every command is named in some document", () => {
  const all = DOCUMENTS.map(text).join("\n");
  for (const { name, commands } of NOUNS) {
    // Only the shells call what begins with an underscore.
    for (const command of commands.filter((one) => !one.name.startsWith("_"))) {
      const words = `${name} ${command.name}`.trim();
      const named = all.includes(`hibernaut ${words}`) || all.includes(`\`${words}`);
      expect(named, `hibernaut ${words}`).toBe(true);
    }
  }
});

test("every refusal of the proxy is explained, with its status, and no other", () => {
  const rows = [...section("docs/errors.md", "Proxy errors").matchAll(/^\| `(\w+)` \| (\d+) \|/gm)];
  const found = new Map<string, string>(Object.entries(REFUSALS).map(([code, status]) => [code, String(status)]));
  for (const file of globSync(["*.ts", "hosts/*.ts"], { cwd: PROXY })) {
    const code = readFileSync(join(PROXY, file), "utf8");
    for (const [, status = "", word = ""] of code.matchAll(/new ProxyRefusal\((\d+), "(\w+)"/g))
      found.set(word, status);
  }
  expect(found.size).toBeGreaterThan(15);
  const pairs = rows.map(([, code, status]) => `${code} ${status}`);
  expect(pairs.sort()).toEqual([...found].map(([code, status]) => `${code} ${status}`).sort());
});

test("every route of the API is named in docs/api.md", () => {
  const document = text("docs/api.md");
  let routes = 0;
  for (const file of globSync("routes/*.ts", { cwd: API })) {
    const code = readFileSync(join(API, file), "utf8");
    for (const [, path = ""] of code.matchAll(/["'`](\/v1\/[^"'`\s]*)["'`]/g)) {
      const last = path
        .replace(/:(\w+)/g, "{$1}")
        .split("/")
        .filter((part) => !part.startsWith("{") && !part.startsWith("$"))
        .at(-1);
      expect(document, `${path} in ${file}`).toContain(`/${last}`);
      routes += 1;
    }
  }
  expect(routes).toBeGreaterThan(15);
});

/** As GitHub makes anchors of headings. */
function anchors(file: string): string[] {
  const prose = text(file).replace(/^```[^]*?^```/gm, "");
  return [...prose.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );
}

test.each(DOCUMENTS)("the links of %s lead somewhere", (file) => {
  for (const [, link = ""] of text(file).matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(link)) continue;
    const [path = "", anchor] = link.split("#");
    const target = path === "" ? file : join(dirname(file), path);
    expect(existsSync(join(ROOT, target)), `${link} in ${file}`).toBe(true);
    if (anchor !== undefined) expect(anchors(target), `${link} in ${file}`).toContain(anchor);
  }
});

const PLACES = [
  "ARCHITECTURE.md",
  "docs/durability.md",
  ...DOCUMENTS.filter((file) => /^packages\/.*README/.test(file)),
];

test.each(PLACES)("every path that %s names exists", (file) => {
  const prose = text(file).replace(/^```[^]*?^```/gm, "");
  const paths = [...prose.matchAll(/`([\w./-]+(?:\/|\.(?:ts|c|mjs)))`/g)].map(([, path = ""]) => path);
  // `domain/scopes.ts` is short for `packages/domain/src/scopes.ts`.
  const inPackage = (path: string) => join(ROOT, "packages", path.replace("/", "/src/"));
  const near = dirname(join(ROOT, file));
  const places = (path: string) => [
    ...[join(ROOT, path), join(SRC, path), inPackage(path)],
    ...[join(near, path), join(near, "src", path)],
  ];
  const missing = paths.filter((path) => !places(path).some((place) => existsSync(place)));
  expect(missing).toEqual([]);
});
