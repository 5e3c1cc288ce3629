/** Builds the image of a Node app: Node with its libraries, the dependencies, the app. */
import { createHash } from "node:crypto";
import { cp, mkdir, readFile, symlink } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { addBase } from "./base.ts";
import { readContext, warnOfSize } from "./context.ts";
import { APP_DIRECTORY, APP_USER, complete, directory } from "./entries.ts";
import { ignoring } from "./ignore.ts";
import { type Job, type Made, settingsFor } from "./job.ts";
import { type Layer, type LayerEntry, writeLayer } from "./layer.ts";
import { type Install, planNode } from "./node-plan.ts";
import { runTool } from "./run-tool.ts";

/** The base for apps that run on Node: the one that runs this CLI, which is new enough. */
export const NODE_BASE = { name: "node", programs: { "usr/local/bin/node": process.execPath } };

/** Tokens of registries, which the app does not need. */
const PRIVATE = [".npmrc"];

export async function buildNode(job: Job): Promise<Made> {
  const { folder, place, report, signal } = job;
  const { command, env, install } = planNode(folder);
  const base = await report.progress(
    `Packing Node ${process.version.slice(1)}`,
    addBase(place.bases, place.blobs, { parts: NODE_BASE, signal }),
  );
  if (install?.notice !== undefined) report.say(install.notice);
  const layers =
    install?.needs === "all"
      ? await fromSources(job, install)
      : [...(install ? await dependencies(job, install) : []), await packApp(job)];
  const settings = settingsFor(command, {
    port: job.port,
    path: ["/app/node_modules/.bin"],
    env: { NODE_ENV: "production", ...env },
  });
  return { layers: [base, ...layers], settings };
}

export async function packApp({ folder, place, ignore, report, signal }: Job): Promise<Layer> {
  const { entries, bytes } = await readContext(folder.path, ignore, { signal });
  warnOfSize(report, bytes);
  return report.progress("Packing the app", writeLayer(place.blobs, appEntries(entries), signal));
}

/** The entries with the app's own directory, which belongs to the app. */
export function appEntries(entries: readonly LayerEntry[]): LayerEntry[] {
  return complete([directory(APP_DIRECTORY, { owner: APP_USER }), ...entries], APP_USER);
}

/** The layer with the dependencies, installed from the files that name them. Made again only if these change. */
async function dependencies(job: Job, install: Install): Promise<Layer[]> {
  const { folder, place, fresh, report, signal } = job;
  const needs = install.needs === "all" ? [] : install.needs;
  const contents = await Promise.all(needs.map((name) => readFile(join(folder.path, name))));
  return place.layersFor(keyOf(install, contents), fresh, async () => {
    const copy = join(place.work, "app");
    await mkdir(copy);
    await Promise.all(needs.map((name) => cp(join(folder.path, name), join(copy, name))));
    await runCommands(install, copy, job);
    const { entries } = await readContext(copy, ignoring(["*", "!node_modules"]), { signal });
    return [await report.progress("Packing the dependencies", writeLayer(place.blobs, appEntries(entries), signal))];
  });
}

/** The layers of an app whose installation needs its sources: the dependencies, and everything else. */
async function fromSources(job: Job, install: Install): Promise<Layer[]> {
  const { folder, place, ignore, fresh, report, signal } = job;
  const { entries, bytes } = await readContext(folder.path, ignore, { to: "", signal });
  warnOfSize(report, bytes);
  const { diffId } = await writeLayer(place.blobs, entries, signal);
  return place.layersFor(keyOf(install, [diffId]), fresh, async () => {
    const copy = join(place.work, "app");
    await copyEntries(entries, copy);
    for (const name of PRIVATE.filter((one) => folder.entries.includes(one)))
      await cp(join(folder.path, name), join(copy, name));
    await runCommands(install, copy, job);
    const made = await readContext(copy, ignoring(PRIVATE), { signal });
    const isPackage = ({ path }: LayerEntry) => path.split("/").includes("node_modules");
    const parts = [made.entries.filter(isPackage), made.entries.filter((entry) => !isPackage(entry))];
    const written = parts.map((part) => writeLayer(place.blobs, appEntries(part), signal));
    return report.progress("Packing the app", Promise.all(written));
  });
}

/** Runs the commands with the Node that the image has: packages compile code for the Node that installs them. */
async function runCommands({ commands, env }: Install, cwd: string, { place, report, signal }: Job): Promise<void> {
  const path = [dirname(process.execPath), process.env.PATH ?? ""].join(delimiter);
  for (const [program = "", ...args] of commands) {
    const what = [program, ...args.filter((arg) => !arg.startsWith("--no-"))].join(" ");
    const options = { cwd, env: { ...env, PATH: path }, log: place.log, signal, what: `\`${what}\`` };
    await report.progress(`Running ${what}`, runTool(program, args, options));
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
