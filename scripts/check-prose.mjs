/** Holds documents, and the code that prose-rules.mjs names, to docs/glossary.md and to the phrases listed there. */
import { globSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { checkProse, glossaryTerms, term } from "./lib/prose.mjs";
import { CODE, DOCUMENTS, EXCEPT, GLOSSARY, PHRASES } from "./prose-rules.mjs";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..");

/** @param {string} file */
const read = (file) => readFileSync(join(ROOT, file), "utf8");

const terms = [
  ...glossaryTerms(read(GLOSSARY)),
  ...PHRASES.map(([pattern, replacement]) => term(pattern, replacement)),
];
const files = globSync([...DOCUMENTS, ...CODE], {
  cwd: ROOT,
  exclude: ["**/node_modules/**", "**/dist/**", ...EXCEPT],
}).sort();
const findings = (await Promise.all(files.map((file) => checkProse(read(file), file, terms)))).flat();

for (const { file, line, column, message } of findings)
  console.log(`${file}:${line}:${column}: ${message.replaceAll(/\s+/g, " ")}`);
console.log(`Read ${files.length} files, looked for ${terms.length} terms.`);
process.exitCode = findings.length === 0 ? 0 : 1;
