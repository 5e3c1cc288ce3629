/** A textlint plugin that sees the prose in code: comments, and strings of more than one word. */
import jsTokens from "js-tokens";

/**
 * @typedef {import("@textlint/ast-node-types").TxtDocumentNode} TxtDocumentNode
 * @typedef {{value: string, start: number}} Span
 */

const COMMENT = /Comment$/;
const TEXT = /^(StringLiteral|Template|NoSubstitutionTemplate|JSXText|JSXString)/;

/**
 * Comments and strings of TypeScript, JavaScript or C, by where they begin. Line comments that follow each other are
 * one, because a sentence may span them.
 *
 * @param {string} code
 * @param {{ jsx?: boolean }} [options] whether HTML may be in it
 * @returns {Span[]}
 */
export function proseOf(code, { jsx = false } = {}) {
  /** @type {Span[]} */
  const spans = [];
  let position = 0;
  let joins = false;
  for (const { type, value } of jsTokens(code, { jsx })) {
    const last = spans.at(-1);
    if (type === "SingleLineComment" && joins && last !== undefined) {
      last.value = code.slice(last.start, position + value.length);
    } else if (COMMENT.test(type) || (TEXT.test(type) && / \S*[a-z]/.test(value))) {
      spans.push({ value, start: position });
    }
    joins = type === "SingleLineComment" || (joins && (type === "WhiteSpace" || type === "LineTerminatorSequence"));
    position += value.length;
  }
  return spans;
}

/**
 * The parts of a comment that are not in backticks; a string is one part.
 *
 * @param {Span} span
 * @returns {Span[]}
 */
function wordsOf({ value, start }) {
  if (!/^\/[/*]/.test(value)) return [{ value, start }];
  let position = start;
  return value.split(/(`[^`\n]*`)/).flatMap((part, index) => {
    position += part.length;
    return index % 2 === 0 ? [{ value: part, start: position - part.length }] : [];
  });
}

/**
 * The document that rules walk: a paragraph for each comment and string.
 *
 * @param {string} code
 * @param {{ jsx: boolean }} options
 */
function parse(code, options) {
  /** @param {number} index */
  const position = (index) => {
    const lines = code.slice(0, index).split("\n");
    return { line: lines.length, column: lines.at(-1)?.length ?? 0 };
  };
  /** @param {Span} span */
  const place = ({ value, start }) => {
    const end = start + value.length;
    return { raw: value, range: [start, end], loc: { start: position(start), end: position(end) } };
  };
  const children = proseOf(code, options).map((span) => ({
    type: "Paragraph",
    ...place(span),
    children: wordsOf(span).map((words) => ({ type: "Str", value: words.value, ...place(words) })),
  }));
  return { type: "Document", ...place({ value: code, start: 0 }), children };
}

class CodeProcessor {
  availableExtensions() {
    return [".ts", ".tsx", ".js", ".mjs", ".c", ".h"];
  }
  /** @param {string} extension */
  processor(extension) {
    const options = { jsx: extension === ".tsx" };
    return {
      /** @param {string} text */
      preProcess: (text) => /** @type {TxtDocumentNode} */ (/** @type {unknown} */ (parse(text, options))),
      /** @param {any[]} messages @param {string} [filePath] */
      postProcess: (messages, filePath) => ({ messages, filePath: filePath ?? "<code>" }),
    };
  }
}

/** @type {import("@textlint/kernel").TextlintPluginCreator} */
export const codePlugin = { Processor: CodeProcessor };
