/** Builds the image of a Node app: Node with its libraries, the dependencies, the app. */
import { createHash } from "node:crypto";
import { cp, mkdir, readFile, symlink } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { addBase } from "./base.ts";
import { readContext } from "./context.ts";
import { APP_DIRECTORY, APP_USER, complete, directory } from "./entries.ts";
import { ignoring } from "./ignore.ts";
import { type Job, type Made, settingsFor } from "./job.ts";
import { type Layer, type LayerEntry, writeLayer } from "./layer.ts";
import { type Install, planNode } from "./node-plan.ts";
import { runTool } from "./run-tool.ts";
import { warnOfSize } from "./warn.ts";

/** The base for apps that run on Node: the one that runs this CLI, which is new enough. */
export const NODE_BASE = { name: "node", programs: { "usr/local/bin/node": process.execPath } };

/** Tokens of registries, which the app does not need. */
const PRIVATE = [".npmrc"];

/** Builds it. */
export async function buildNode(job: Job): Promise<Made> {
  const { folder, place, report, signal } = job;
  const { command, env, install } = planNode(folder);
  const base = await report.step(
    `Packing Node ${process.version.slice(1)}`,
    addBase(place.bases, place.blobs, { parts: NODE_BASE, signal }),
  );
  if (install?.notice !== undefined) report.say(install.notice);
  const layers =
    install?.needs === "all"
      ? await fromSources(job, install)
      : [...(install ? [await dependencies(job, install)] : []), await packApp(job)];
  const settings = settingsFor(command, {
    port: job.port,
    path: ["/app/node_modules/.bin"],
    env: { NODE_ENV: "production", ...env },
  });
  return { layers: [base, ...layers], settings };
}

/** The layer with the files of the directory. */
export async function packApp({ folder, place, ignore, report, signal }: Job): Promise<Layer> {
  const { entries, bytes } = await readContext(folder.path, ignore, { signal });
  warnOfSize(report, bytes);
  return report.step("Packing the app", writeLayer(place.blobs, appEntries(entries), signal));
}

/** The entries with the app's own directory, which belongs to the app. */
export function appEntries(entries: readonly LayerEntry[]): LayerEntry[] {
  return complete([directory(APP_DIRECTORY, { owner: APP_USER }), ...entries], APP_USER);
}

/** The layer with the dependencies, installed from the files that name them. Made again only if these change. */
async function dependencies({ folder, place, fresh, report, signal }: Job, install: Install): Promise<Layer> {
  const needs = install.needs === "all" ? [] : install.needs;
  const contents = await Promise.all(needs.map((name) => readFile(join(folder.path, name))));
  const key = keyOf(install, contents);
  const [known] = (fresh ? undefined : await place.cached(key)) ?? [];
  if (known !== undefined) return known;
  const copy = join(place.work, "app");
  await mkdir(copy);
  await Promise.all(needs.map((name) => cp(join(folder.path, name), join(copy, name))));
  await runCommands(install, copy, { place, report, signal });
  const { entries } = await readContext(copy, ignoring(["*", "!node_modules"]), { signal });
  const layer = await report.step("Packing the dependencies", writeLayer(place.blobs, appEntries(entries), signal));
  await place.remember(key, [layer]);
  return layer;
}

/** The layers of an app whose installation needs its sources: the dependencies, and everything else. */
async function fromSources(job: Job, install: Install): Promise<Layer[]> {
  const { folder, place, ignore, fresh, report, signal } = job;
  const { entries, bytes } = await readContext(folder.path, ignore, { to: "", signal });
  warnOfSize(report, bytes);
  const { diffId } = await writeLayer(place.blobs, entries, signal);
  const key = keyOf(install, [diffId]);
  const known = fresh ? undefined : await place.cached(key);
  if (known !== undefined) return known;
  const copy = join(place.work, "app");
  await copyEntries(entries, copy);
  for (const name of PRIVATE.filter((one) => folder.entries.includes(one)))
    await cp(join(folder.path, name), join(copy, name));
  await runCommands(install, copy, job);
  const made = await readContext(copy, ignoring(PRIVATE), { signal });
  const [packages = [], own = []] = [true, false].map((wanted) =>
    made.entries.filter(({ path }) => path.split("/").includes("node_modules") === wanted),
  );
  const layers = await report.step(
    "Packing the app",
    Promise.all([packages, own].map((list) => writeLayer(place.blobs, appEntries(list), signal))),
  );
  await place.remember(key, layers);
  return layers;
}

/** Runs the commands with the Node that the image has: packages compile code for the Node that installs them. */
async function runCommands(
  { commands, env }: Install,
  cwd: string,
  { place, report, signal }: Pick<Job, "place" | "report" | "signal">,
): Promise<void> {
  const path = [dirname(process.execPath), process.env.PATH ?? ""].join(delimiter);
  for (const [program = "", ...args] of commands) {
    const what = [program, ...args.filter((arg) => !arg.startsWith("--no-"))].join(" ");
    const options = { cwd, env: { ...env, PATH: path }, log: place.log, signal, what: `\`${what}\`` };
    await report.step(`Running ${what}`, runTool(program, args, options));
  }
}

/** Copies what the entries name, which is the directory without what is ignored. */
async function copyEntries(entries: readonly LayerEntry[], to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  for (const { kind, path, from, target } of entries) {
    await mkdir(dirname(join(to, path)), { recursive: true });
    if (kind === "directory") await mkdir(join(to, path), { recursive: true });
    else if (kind === "link") await symlink(target ?? "", join(to, path));
    else if (from !== undefined) await cp(from, join(to, path));
  }
}

function keyOf({ commands, env }: Install, contents: readonly (Buffer | string)[]): string {
  const hash = createHash("sha256").update(JSON.stringify([process.version, commands, env]));
  for (const content of contents) hash.update(`\n${content.length}\n`).update(content);
  return hash.digest("hex");
}
