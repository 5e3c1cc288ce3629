/**
 * Looks for promises that `void` hides in the sources: what they reject with would be nobody's, and end the process.
 * `background()` takes work that nobody waits for. Part of `npm run check`: oxlint sees statements, but no arrow
 * functions.
 */
import { globSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const DASHBOARD = "packages/dashboard/src";
/** What has the types of Node, and what has those of browsers. */
const PARTS = [
  { config: "tsconfig.json", files: ["packages/*/src/**/*.ts", "services/*/src/**/*.ts"], but: DASHBOARD },
  { config: `${DASHBOARD}/tsconfig.json`, files: [`${DASHBOARD}/**/*.ts`, `${DASHBOARD}/**/*.tsx`], but: undefined },
];

/**
 * Whether the expression handles what it may reject with.
 *
 * @param {ts.Expression} expression
 * @returns {boolean}
 */
function isHandled(expression) {
  if (!ts.isCallExpression(expression) || !ts.isPropertyAccessExpression(expression.expression)) return false;
  const { name, expression: inner } = expression.expression;
  if (name.text === "finally") return isHandled(inner);
  return name.text === "catch" || (name.text === "then" && expression.arguments.length === 2);
}

/**
 * @param {ts.Type} type
 * @returns {boolean}
 */
function isPromise(type) {
  return type.isUnion() ? type.types.some(isPromise) : type.getSymbol()?.name === "Promise";
}

/** @type {string[]} */
const found = [];
let read = 0;
for (const { config, files, but } of PARTS) {
  const { config: json } = ts.readConfigFile(join(ROOT, config), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(json, ts.sys, dirname(join(ROOT, config)));
  const names = files
    .flatMap((pattern) => globSync(pattern, { cwd: ROOT }))
    .filter((name) => but === undefined || !name.startsWith(but));
  const program = ts.createProgram(
    names.map((name) => join(ROOT, name)),
    options,
  );
  const checker = program.getTypeChecker();
  read += names.length;
  for (const name of names) {
    const source = program.getSourceFile(join(ROOT, name));
    if (source === undefined) throw new Error(`${name} was not read`);
    /** @param {ts.Node} node */
    const visit = (node) => {
      if (
        ts.isVoidExpression(node) &&
        !isHandled(node.expression) &&
        isPromise(checker.getTypeAtLocation(node.expression))
      ) {
        const { line } = source.getLineAndCharacterOfPosition(node.getStart());
        found.push(`${relative(ROOT, source.fileName)}:${line + 1}: ${node.getText().split("\n")[0]}`);
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
  }
}
for (const line of found) console.log(`${line}\n  hides a promise: hand it to background(), or handle its rejection`);
console.log(`Read ${read} files.`);
process.exitCode = found.length === 0 ? 0 : 1;
