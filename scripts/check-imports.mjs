/**
 * Holds the imports of all packages to import-rules.mjs. An own check, because TypeScript 7
 * gives tools no access to its parser, and a tool that reads nothing must not say "fine".
 */
import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join, posix, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { LEAST_FILES, RULES } from "./import-rules.mjs";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..");

/**
 * @typedef {object} Import
 * @property {string} specifier as it is written
 * @property {"static" | "type" | "dynamic"} kind
 * @property {number} line
 *
 * @typedef {import("./import-rules.mjs").Rule} Rule
 */

// Comments, template strings and regular expressions may hold what looks like an import.
// Strings are matched only to be left alone.
const NOT_CODE =
  /\/\/[^\n]*|\/\*[^]*?\*\/|`(?:\\[^]|[^\\`])*`|(?<=[(,=:[!&|?{};\n]\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/g;
const IMPORT =
  /\b(?:import|export)\s+(?<type>type\s+(?!from\b))?(?:[\w$*{}\s,]+?\s*from\s*)?(?<quote>["'])(?<name>[^"'\n]+)\k<quote>|\bimport\s*\(\s*(?<late>["'])(?<lateName>[^"'\n]+)\k<late>/g;

/**
 * Every import, export-from and dynamic import of a TypeScript or JavaScript file.
 *
 * @param {string} text
 * @returns {Import[]}
 */
export function findImports(text) {
  const code = text.replace(NOT_CODE, (match) => (/^["']/.test(match) ? match : match.replace(/[^\n]/g, " ")));
  return [...code.matchAll(IMPORT)].map((match) => {
    const { type, name, lateName } = match.groups ?? {};
    const line = code.slice(0, match.index).split("\n").length;
    // `typeof import("x")` and `import("x").Type` are types, but the stricter answer is the safer one.
    if (lateName !== undefined) return { specifier: lateName, kind: "dynamic", line };
    return { specifier: name ?? "", kind: type === undefined ? "static" : "type", line };
  });
}

/**
 * What a specifier means: a path in the repository, or the name of a package or of a module of Node's.
 *
 * @param {string} file
 * @param {string} specifier
 */
export function targetOf(file, specifier) {
  if (specifier.startsWith(".")) return posix.join(posix.dirname(file), specifier);
  const own = /^@hibernaut\/([^/]+)\/?(.*)$/.exec(specifier);
  if (own === null) return specifier;
  return own[2] === "" ? `packages/${own[1]}/src/index.ts` : `packages/${own[1]}/src/${own[2]}`;
}

/** @param {string} path @param {string} pattern */
function fits(path, pattern) {
  const source = pattern
    .split(/(\*\*|\*)/)
    .map((part) => (part === "**" ? ".*" : part === "*" ? "[^/]*" : part.replace(/[.+^${}()|[\]\\]/g, "\\$&")))
    .join("");
  return new RegExp(`^${source}$`).test(path);
}

/** The folder of the platform a path lies in, as a pattern. @param {string} path */
function partOf(path) {
  return `${path.split("/").slice(0, 4).join("/")}/**`;
}

/**
 * The rules an import breaks.
 *
 * @param {string} file
 * @param {{specifier: string, kind: Import["kind"]}} found
 * @param {Rule[]} [rules]
 * @returns {Rule[]}
 */
export function brokenRules(file, found, rules = RULES) {
  const target = targetOf(file, found.specifier);
  /** @param {string[] | undefined} patterns @param {string} path */
  const any = (patterns, path) =>
    patterns?.some((pattern) => fits(path, pattern === "{same part}" ? partOf(file) : pattern)) ?? false;
  return rules.filter((rule) => {
    if (!any(rule.files, file) || any(rule.except, file)) return false;
    if (found.kind !== "static" && rule.spare?.includes(found.kind)) return false;
    if (rule.only !== undefined && !any(rule.only, target)) return true;
    return any(rule.never, target) && !any(rule.unless, target);
  });
}

/** Source files of a package or service, as paths in the repository. @param {string} root @param {string} folder */
function sourcesOf(root, folder) {
  try {
    return readdirSync(join(root, folder, "src"), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.[cm]?[jt]sx?$/.test(entry.name))
      .map((entry) => relative(root, join(entry.parentPath, entry.name)));
  } catch {
    return []; // reported as too few
  }
}

/** What stands in a folder of the repository; nothing when there is no such folder. @param {string} root @param {string} parent */
function foldersIn(root, parent) {
  const path = join(root, parent);
  return existsSync(path) ? readdirSync(path).map((name) => `${parent}/${name}`) : [];
}

/**
 * Checks the sources of all packages and services below a folder.
 *
 * @param {string} [root]
 * @returns {{faults: string[], files: number, imports: number}}
 */
export function checkImports(root = ROOT) {
  /** @type {string[]} */
  const faults = [];
  let files = 0;
  let imports = 0;
  const folders = new Set([
    ...Object.keys(LEAST_FILES),
    ...foldersIn(root, "packages"),
    ...foldersIn(root, "services"),
  ]);
  for (const folder of folders) {
    const sources = sourcesOf(root, folder);
    const least = Object.entries(LEAST_FILES).find(([key]) => key === folder)?.[1] ?? 0;
    if (sources.length < least) faults.push(`${folder}/src: read ${sources.length} files, expected ${least} or more`);
    files += sources.length;
    for (const file of sources) {
      const found = findImports(readFileSync(join(root, file), "utf8"));
      imports += found.length;
      for (const one of found) {
        for (const rule of brokenRules(file, one)) {
          faults.push(`${file}:${one.line} imports ${one.specifier}: ${rule.name}, because ${rule.reason}`);
        }
      }
    }
  }
  // Files without a single import between them mean that the search for imports is broken.
  if (imports < files) faults.push(`found only ${imports} imports in ${files} files`);
  return { faults, files, imports };
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const { faults, files, imports } = checkImports();
  for (const fault of faults) console.error(fault);
  if (faults.length > 0) process.exitCode = 1;
  else console.log(`${imports} imports in ${files} files keep the rules`);
}
