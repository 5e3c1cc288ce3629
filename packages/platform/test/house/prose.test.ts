import { describe, expect, test } from "vitest";
import { checkProse, glossaryTerms, term } from "../../../../scripts/lib/prose.mjs";
import { proseOf } from "../../../../scripts/lib/prose-code.mjs";
import { PHRASES } from "../../../../scripts/prose-rules.mjs";

const GLOSSARY = [
  "| word | meaning | not |",
  "|---|---|---|",
  "| hostname | A name of an app. | `host name`, domain |",
].join("\n");
const TERMS = [...glossaryTerms(GLOSSARY), ...PHRASES.map(([pattern, replacement]) => term(pattern, replacement))];

/** Where a text is wrong, and the words that are. */
async function found(text: string, file = "guide.md"): Promise<string[]> {
  const findings = await checkProse(text, file, TERMS);
  return findings.map(({ line, message }) => `${line} ${/“([^”]+)”/.exec(message)?.[1]}`);
}

describe("documents", () => {
  test("a variant that the glossary refuses is found, with its place and the word to use", async () => {
    expect(await checkProse("# Title\n\nAdd a host name.\n", "guide.md", TERMS)).toEqual([
      { file: "guide.md", line: 3, column: 7, message: "Incorrect term: “host name”, use “hostname” instead" },
    ]);
    expect(await found("Choose a domain.")).toEqual([]);
  });

  test.each([
    ["The machine goes on.", "goes on"],
    ["It is going on.", "going on"],
    ["`a/b` is no path.", "is no path"],
    ["The variable FOO is no setting.", "is no setting"],
    ["These are no settings.", "are no settings"],
    ["Whoever asks.", "Whoever"],
    ["Read for ever.", "for ever"],
    ["Wait for so long.", "for so long"],
    ["Keep so many.", "so many"],
    ["It runs all the same.", "all the same"],
    ["A machine comes to run.", "comes to run"],
    ["This brings an app to run.", "brings an app to run"],
    ["All but for one.", "but for"],
    ["The proxy beside it.", "beside"],
    ["The name stands in the file.", "stands"],
    ["It resumes where it stood.", "stood"],
  ])("dialect: %s", async (text, words) => {
    expect(await found(text)).toEqual([`1 ${words}`]);
  });

  test.each([
    "There is no app named shop.",
    "There are no machines.",
    "The machine is no longer running.",
    "OCI stands for something.",
    "Besides, it is ongoing.",
    "Run `whoever` and [read on](beside.md).",
    "~~The machine goes on.~~",
    "> The machine goes on.",
    "    the machine goes on",
    "```\nthe machine goes on\n```",
  ])("fine: %s", async (text) => {
    expect(await found(text)).toEqual([]);
  });

  test("a phrase is found across lines", async () => {
    expect(await found("The machine goes\non.")).toEqual(["1 goes\non"]);
  });
});

describe("code", () => {
  const CODE = [
    "/**",
    " * The machine goes",
    " * on.",
    " */",
    "const whoever = 1; // for whoever asks, for",
    "// ever, and `so many`",
    'throw new Error("It is no path.");',
    'const key = "beside";',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is code
    "log(`${key} stands here`);",
  ].join("\n");

  test("comments and sentences are read; names, keys and what is in backticks are not", async () => {
    expect(await found(CODE, "file.ts")).toEqual([
      "2 goes\n * on",
      "5 whoever",
      "5 for\n// ever",
      "7 is no path",
      "9 stands",
    ]);
  });

  test("line comments that follow each other are one", () => {
    const spans = proseOf("// one\n// two\nx;\n// three\n");
    expect(spans).toEqual([
      { value: "// one\n// two", start: 0 },
      { value: "// three", start: 17 },
    ]);
  });

  test("C is read, too", async () => {
    expect(await found('#include <a/b.h>\n/* whoever */\nint x = 1 / 2; fail("it goes on");\n', "main.c")).toEqual([
      "2 whoever",
      "3 goes on",
    ]);
  });
});
