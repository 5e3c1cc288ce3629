/**
 * What the prose check refuses, and where it looks. The words of docs/glossary.md are read from its table; phrases that
 * are English, but not the English of this project, are listed here. Both are data: check-prose.mjs does the work.
 */

/** The documents that are checked. */
export const DOCUMENTS = ["*.md", "docs/**/*.md", "packages/*/*.md", "services/*/*.md", "examples/*/*.md"];

/** The code whose comments and strings are checked: TypeScript, JavaScript and C. */
export const CODE = [
  "bench/**/*.mjs",
  "examples/**/*.{js,mjs}",
  "packages/*/{src,test,bin}/**/*.{ts,tsx,js}",
  "packages/guest/{agent,test}/*.{c,h}",
  "packages/{dashboard,guest}/*.{mjs,ts}",
  "scripts/**/*.mjs",
  "services/*/{src,test}/**/*.ts",
];

/** These quote what is refused. */
export const EXCEPT = ["scripts/prose-rules.mjs", "packages/platform/test/house/prose.test.ts"];

/** The table that names the words we use, and those we don't. */
export const GLOSSARY = "docs/glossary.md";

/**
 * A phrase we don't write: a regular expression and what to write instead. A space stands for any white space, so a
 * phrase is found across lines. Only phrases with next to no false positives belong here.
 *
 * @type {ReadonlyArray<[pattern: string, replacement: string]>}
 */
export const PHRASES = [
  ["(?:goes|go|going|went|gone) on", "continue, resume or keep running"],
  ["(?<!there )is no (?!longer|more|less|fewer|better|worse|different|reason|need|use|way)[a-z]\\w*", "is not a …"],
  ["(?<!there )are no (?!longer|more|less|fewer|better|worse|different|reason|need|use|way)[a-z]\\w*", "are not …"],
  ["(?<!there )is none", "is not one"],
  ["knows? no", "does not know"],
  ["has not the", "does not have the"],
  ["so many", "this many, at least N or up to N"],
  ["for so long", "for this long"],
  ["all the same", "still, anyway or nevertheless"],
  ["for ever", "forever or without limit"],
  ["whoever", "the client, the caller or anyone who"],
  ["somebody", "someone, or the name of the actor"],
  ["(?:comes?|came|brings?|brought)(?: \\w+){0,3} to run", "start, come up or deploy"],
  ["but for", "except for"],
  ["lest", "so that … not"],
  ["beside", "next to, alongside, with or in addition to"],
  ["stood", "was, resided or left off"],
  ["stands(?! (?:for|out|by)\\b)", "is or resides"],
  ["belongs? into", "belong in"],
  ["(?:is|are) warned of", "cause a warning"],
  ["by the alphabet", "alphabetically"],
  ["anew", "again or from the beginning"],
];
