/** Lists test files and chooses those that a run asks for. Plain JavaScript for Node 18 and later. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const BOUNDARY = "[/._-]";
const LONG_IMPORT = /from ".*\/(helpers\/long\.ts|lib\/long\.mjs)"/;

/**
 * Lists every test file, relative to the root, with slashes.
 *
 * @param {string} root @returns {string[]}
 */
export function listTestFiles(root) {
  const packages = ["packages", "services"].flatMap((parent) =>
    readdirSync(join(root, parent)).map((name) => `${parent}/${name}/test`),
  );
  return packages
    .filter((directory) => existsSync(join(root, directory)))
    .flatMap((directory) =>
      readdirSync(join(root, directory), { recursive: true, encoding: "utf8" }).map((file) => `${directory}/${file}`),
    )
    .filter((file) => file.endsWith(".test.ts"))
    .sort();
}

/**
 * Returns whether a path has the word between two boundaries: "lock" is in `store/lock.test.ts`, and not in
 * `clock.qemu.test.ts`. A word may contain boundaries: `images/store`, `which-machine`, a whole path.
 *
 * @param {string} path @param {string} word @returns {boolean}
 */
export function hasWord(path, word) {
  const literal = word.replace(/^\.?\/+|\/+$/g, "").replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`(^|${BOUNDARY})${literal}($|${BOUNDARY})`, "i").test(path);
}

/**
 * Returns the files whose paths have at least one of the words (all files if there are no words), and the words that
 * no path has, which are most likely typos.
 *
 * @param {string[]} files @param {string[]} words @returns {{chosen: string[], unknown: string[]}}
 */
export function chooseFiles(files, words) {
  const chosen = files.filter((file) => words.length === 0 || words.some((word) => hasWord(file, word)));
  return { chosen, unknown: words.filter((word) => !files.some((file) => hasWord(file, word))) };
}

/**
 * Returns whether `npm run test:long` runs the file: because of its name, or because it repeats more there (`longOr`).
 *
 * @param {string} root @param {string} file @returns {boolean}
 */
export function isLong(root, file) {
  return file.endsWith(".long.test.ts") || LONG_IMPORT.test(readFileSync(join(root, file), "utf8"));
}

/**
 * What changes a process for all files that run in it: Vitest's ways to replace modules, and Node's own ways. What else
 * Vitest's helpers replace is put back after the file (`test-put-back.mjs`).
 */
const CHANGES_PROCESS = new RegExp(
  [
    String.raw`\bvi\.(mock|doMock|hoisted|resetModules)\b`,
    String.raw`\bprocess\.(chdir|emit|off|on|once)\b`,
    String.raw`\bprocess\.env(\.\w+|\[[^\]]+\]) = |delete process\.env`,
    String.raw`\bglobalThis\b`,
  ].join("|"),
);

/**
 * Returns whether a file needs a process of its own, because others would notice what it changes there. To start one and
 * to load the modules again takes longer than most unit tests.
 *
 * @param {string} root @param {string} file @returns {boolean}
 */
export function needsOwnProcess(root, file) {
  return CHANGES_PROCESS.test(readFileSync(join(root, file), "utf8"));
}

/** The tag of a whole file, and that of a test or a group. */
const ALL_AGAIN = /^ \* @module-tag again$/m;
const AGAIN = /\btags: "again"/;

/**
 * Returns whether all tests of the file have the tag `again`, so that `npm test` need not read it.
 *
 * @param {string} root @param {string} file @returns {boolean}
 */
export function isAllAgain(root, file) {
  return ALL_AGAIN.test(readFileSync(join(root, file), "utf8"));
}

/**
 * Returns whether `npm run test:all` has tests in the file.
 *
 * @param {string} root @param {string} file @returns {boolean}
 */
export function hasAgain(root, file) {
  return AGAIN.test(readFileSync(join(root, file), "utf8")) || isAllAgain(root, file);
}
