/** The manual pages, as `man` shows them. */
import { execFileSync, spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { NOUNS } from "../src/commands.ts";
import { manualPages } from "../src/manual.ts";

const PAGES = manualPages(NOUNS, "1.2.3");
const of = (file: string) => PAGES.find((page) => page.file === file)?.text ?? "";
const hasGroff = spawnSync("groff", ["--version"]).status === 0;

test("there is a page for the program and for each noun, and every command with its example is in one", () => {
  expect(PAGES.map(({ file }) => file)).toEqual([
    "hibernaut.1",
    ...NOUNS.slice(1).map(({ name }) => `hibernaut-${name}.1`),
  ]);
  const all = PAGES.map(({ text }) => text)
    .join("\n")
    .replaceAll("\\-", "-");
  for (const { name, commands } of NOUNS)
    for (const command of commands.filter(({ hidden }) => hidden !== true))
      expect(all).toMatch(new RegExp(`^\\.SS "hibernaut ${name === "" ? "" : `${name} `}${command.name}( .*)?"$`, "m"));
});

test("text cannot become a request of roff, and quotation marks do not end an argument", () => {
  const noun = (text: string) => [
    { name: "", summary: "", commands: [{ name: "x", summary: text, examples: [text], run: async () => never() }] },
  ];
  const [page] = manualPages(noun(`.so /etc/passwd\n'quoted "words" \\fB`), "1");
  expect(page?.text).toContain("\n\\&.so /etc/passwd\n\\&'quoted \\(dqwords\\(dq \\efB.");
});

test.skipIf(!hasGroff)("man finds nothing to complain about", () => {
  for (const { file, text } of PAGES) {
    const { stderr } = spawnSync("groff", ["-man", "-Tutf8", "-ww", "-z"], { input: text, encoding: "utf8" });
    expect(stderr, file).toBe("");
  }
  const shown = execFileSync("groff", ["-man", "-Tutf8", "-P-cbou"], {
    input: of("hibernaut-machine.1"),
    encoding: "utf8",
  });
  expect(shown).toMatch(/hibernaut machine suspend \[id\.\.\.\]/);
});

function never(): never {
  throw new Error("nobody runs it");
}
