/** What is said to people who type what other tools call things. */
import type { Command as Parser } from "commander";
import { describe, expect, test } from "vitest";
import { NOUNS } from "../src/commands.ts";
import { ELSEWHERE, OPTIONS_ELSEWHERE } from "../src/habits.ts";
import { buildProgram } from "../src/program.ts";

const program = buildProgram(NOUNS, "", async () => {});

/** The command that the first of the words name, and the words after it. */
function find(words: readonly string[]): { parser: Parser; rest: readonly string[] } {
  let parser = program;
  for (const [index, word] of words.entries()) {
    const next = parser.commands.find((one) => [one.name(), ...one.aliases()].includes(word));
    if (next === undefined) return { parser, rest: words.slice(index) };
    parser = next;
  }
  return { parser, rest: [] };
}

describe.each(Object.entries({ ...ELSEWHERE, ...OPTIONS_ELSEWHERE }))("%s", (typed, advice) => {
  test("does not exist", () => {
    const { parser, rest } = find(typed.split(" "));
    expect(rest).toHaveLength(1);
    expect(parser.options.flatMap(({ short, long }) => [short, long])).not.toContain(rest[0]);
  });

  test("is answered with commands and options that exist", () => {
    for (const [, words = ""] of advice.matchAll(/hibernaut ([^.,:;]+)/g)) {
      const { parser, rest } = find(words.trim().split(" "));
      expect(parser.commands, words).toEqual([]);
      const options = parser.options.flatMap(({ long }) => (long === undefined || long === null ? [] : [long]));
      for (const word of rest.filter((one) => /^--\w/.test(one) && one !== "--help"))
        expect(options, `${words} in "${advice}"`).toContain(word);
    }
  });
});
