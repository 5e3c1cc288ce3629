/** Checks prose with textlint: the words of the glossary and the phrases of prose-rules.mjs, in documents and in code. */
import { createRequire } from "node:module";
import { extname } from "node:path";
import { TextlintKernel } from "@textlint/kernel";
// @ts-expect-error: it has no types
import terminology from "textlint-rule-terminology";
import { codePlugin } from "./prose-code.mjs";

/**
 * @typedef {[pattern: RegExp, replacement: string]} Term
 * @typedef {{file: string, line: number, column: number, message: string}} Finding
 */

// A CommonJS module whose default export Node and Vitest see in different places.
const { default: markdown } = createRequire(import.meta.url)("@textlint/textlint-plugin-markdown");

/** Markdown that quotes what we don't write. */
const SKIP = ["BlockQuote", "Delete"];

/**
 * A term that is found across lines, also those of a comment (` * `, `//`), and in words of their own only.
 *
 * @param {string} pattern
 * @param {string} replacement
 * @returns {Term}
 */
export function term(pattern, replacement) {
  return [new RegExp(`(?<![\\w-])(?:${pattern.replaceAll(" ", "[\\s*/]+")})(?![\\w-])`), replacement];
}

/**
 * The terms of a glossary: in each row of a table with three columns, the word in the first and, in backticks in the
 * third, the variants of it that are refused.
 *
 * @param {string} glossary Markdown
 */
export function glossaryTerms(glossary) {
  const rows = [...glossary.matchAll(/^\| ([^|]+) \| [^|]+ \| ([^|]+) \|$/gm)];
  return rows.flatMap(([, word = "", variants = ""]) =>
    [...variants.matchAll(/`([^`]+)`/g)].map(([, variant = ""]) => term(variant, word.trim())),
  );
}

/**
 * What is wrong with the prose of a file, by its place. Code, link targets, quotations and text that is struck through
 * are not prose.
 *
 * @param {string} text
 * @param {string} file its name says how it is read: `.md`, or code
 * @param {Term[]} terms
 * @returns {Promise<Finding[]>}
 */
export async function checkProse(text, file, terms) {
  const { messages } = await new TextlintKernel().lintText(text, {
    ext: extname(file),
    filePath: file,
    plugins: [
      { pluginId: "markdown", plugin: markdown },
      { pluginId: "code", plugin: codePlugin },
    ],
    rules: [{ ruleId: "terminology", rule: terminology, options: { defaultTerms: false, skip: SKIP, terms } }],
  });
  return messages.map(({ loc, message }) => ({ file, line: loc.start.line, column: loc.start.column, message }));
}
