/** How the image of a Node app is made: its command and its dependencies. Pure. */

import { splitWords } from "@hibernaut/lib/words";
import type { Folder } from "../appfile/folder.ts";
import { nodeStart } from "./detect.ts";

/** Steps that put the dependencies into `node_modules` of a copy of the app. */
export interface Install {
  commands: string[][];
  env: Record<string, string>;
  /** What the user should know about it. */
  notice: string | undefined;
  /** Files of the directory that the commands need, if they don't need all of them. */
  needs: string[] | "all";
}

interface NodePlan {
  command: string[];
  env: Record<string, string>;
  /** Undefined for an app without dependencies and without a script `build`. */
  install: Install | undefined;
}

/** Files that decide what a package manager installs. */
const INPUTS = [
  "package.json",
  "package-lock.json",
  "npm-shrinkwrap.json",
  "pnpm-lock.yaml",
  "pnpm-workspace.yaml",
  "yarn.lock",
  ".npmrc",
  ".yarnrc",
  ".yarnrc.yml",
];
const QUIET = ["--no-audit", "--no-fund"];
/** Anything in a start script that only a shell understands. */
const SHELL_SYNTAX = /[|&;<>()$`*?#~\n\\]/;

/** Plans it. The directory has something to start. */
export function planNode(folder: Folder): NodePlan {
  const start = nodeStart(folder) ?? { file: "server.js" };
  const { command, env } = "script" in start ? commandOf(start.script) : { command: ["node", start.file], env: {} };
  return { command, env, install: planInstall(folder) };
}

/**
 * The words of a start script, so that the app is started without a shell in between and gets its signals, and the
 * variables in front of it. A script that needs a shell gets one.
 */
export function commandOf(script: string): { command: string[]; env: Record<string, string> } {
  const words = SHELL_SYNTAX.test(script) ? undefined : splitWords(script);
  if (words === undefined) return { command: ["/bin/sh", "-c", script], env: {} };
  const rest = words[0] === "cross-env" ? words.slice(1) : words;
  const first = rest.findIndex((word) => !/^[A-Za-z_]\w*=/.test(word));
  if (first === -1) return { command: ["/bin/sh", "-c", script], env: {} };
  const env = Object.fromEntries(rest.slice(0, first).map((word) => word.split(/=(.*)/s, 2) as [string, string]));
  return { command: rest.slice(first), env };
}

/** How to install the dependencies; undefined if there is nothing to install or to build. */
export function planInstall(folder: Folder): Install | undefined {
  const {
    dependencies,
    devDependencies,
    optionalDependencies,
    packageManager,
    scripts = {},
    workspaces,
  } = folder.packageJson ?? {};
  const builds = isText(scripts, "build");
  const count = Object.keys({ ...asTable(dependencies), ...asTable(optionalDependencies) }).length;
  if (count === 0 && !builds) return undefined;
  // `prepare` runs with every install, and usually needs what only developers need.
  const everything = builds || isText(scripts, "prepare");
  const sources =
    everything ||
    workspaces !== undefined ||
    ["preinstall", "install", "postinstall"].some((name) => isText(scripts, name)) ||
    Object.values(asTable(dependencies)).some((version) => /^(file|link|workspace):/.test(String(version)));
  const manager = managerOf(folder.entries, packageManager);
  const commands = [
    manager.install(everything),
    ...(builds ? [[manager.name, "run", "build"]] : []),
    ...(everything ? [manager.prune] : []),
  ].filter((words) => words.length > 0);
  return {
    commands,
    env: manager.env,
    notice:
      manager.locked || (count === 0 && Object.keys(asTable(devDependencies)).length === 0)
        ? undefined
        : "There is no lock file, so the versions of dependencies may change. To fix them, run `npm install` and commit package-lock.json.",
    needs: sources ? "all" : INPUTS.filter((name) => folder.entries.includes(name)),
  };
}

interface Manager {
  name: "npm" | "pnpm" | "yarn";
  locked: boolean;
  install(everything: boolean): string[];
  prune: string[];
  env: Record<string, string>;
}

/** The package manager whose lock file is there; `packageManager` decides if there are several. */
function managerOf(entries: readonly string[], wanted: unknown): Manager {
  const named = /^(npm|pnpm|yarn)@(\d+)?/.exec(typeof wanted === "string" ? wanted : "");
  const has = (name: string) => entries.includes(name);
  const isPnpm = named ? named[1] === "pnpm" : has("pnpm-lock.yaml");
  const isYarn = named ? named[1] === "yarn" : has("yarn.lock");
  if (isPnpm) {
    const locked = has("pnpm-lock.yaml");
    const install = (everything: boolean) => [
      ...["pnpm", "install", ...(locked ? ["--frozen-lockfile"] : ["--no-lockfile"])],
      ...(everything ? [] : ["--prod"]),
    ];
    // Without it, it asks before it removes anything.
    return { name: "pnpm", locked, install, prune: ["pnpm", "prune", "--prod"], env: { CI: "true" } };
  }
  if (isYarn) {
    const locked = has("yarn.lock");
    if (has(".yarnrc.yml") || Number(named?.[2] ?? 1) > 1) {
      // Its own way to install keeps packages as archives, which the app would need its loader for.
      const env = { YARN_NODE_LINKER: "node-modules", YARN_ENABLE_GLOBAL_CACHE: "true" };
      const install = () => ["yarn", "install", ...(locked ? ["--immutable"] : [])];
      return { name: "yarn", locked, install, prune: [], env };
    }
    const base = ["yarn", "install", "--non-interactive", ...(locked ? ["--frozen-lockfile"] : ["--no-lockfile"])];
    const prune = [...base, "--production", "--ignore-scripts", "--prefer-offline"];
    return { name: "yarn", locked, install: (all) => (all ? base : [...base, "--production"]), prune, env: {} };
  }
  const locked = has("package-lock.json") || has("npm-shrinkwrap.json");
  const base = locked ? ["npm", "ci", ...QUIET] : ["npm", "install", ...QUIET, "--package-lock=false"];
  const install = (everything: boolean) => [...base, everything ? "--include=dev" : "--omit=dev"];
  return { name: "npm", locked, install, prune: ["npm", "prune", "--omit=dev", ...QUIET], env: {} };
}

function asTable(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function isText(table: unknown, key: string): boolean {
  const value = asTable(table)[key];
  return typeof value === "string" && value.trim() !== "";
}
