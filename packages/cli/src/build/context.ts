/** Reads the directory that an image is built from, within limits. */
import { existsSync, readFileSync } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { CliError } from "../failure.ts";
import { megabytes } from "../terminal.ts";
import { APP_DIRECTORY, APP_USER, MODES } from "./entries.ts";
import { IGNORED_BY_DEFAULT, type Ignore, ignoring } from "./ignore.ts";
import type { Report } from "./job.ts";
import type { LayerEntry } from "./layer.ts";

/** Above this, a directory probably has files that the app does not need, and every machine pays for them. */
const WARN_BYTES = 200 * 1024 ** 2;
/** The platform refuses images above 64 GiB; nobody means to pack this much source. */
const MAX_BYTES = 4 * 1024 ** 3;
/** Each file takes memory while the directory is read: about 1 KB. */
const MAX_FILES = 200_000;

interface BuildContext {
  entries: LayerEntry[];
  bytes: number;
}

/** The rules for a directory: ours, then those of its ignore file. Without a name, `.dockerignore` if it exists. */
export function ignoreOf(folder: string, name?: string, defaults: readonly string[] = IGNORED_BY_DEFAULT): Ignore {
  const file = join(folder, name ?? ".dockerignore");
  if (!existsSync(file)) {
    if (name === undefined) return ignoring(defaults);
    throw new CliError("not_found", `${file} does not exist. Correct ignorefile under [build] in the app file.`);
  }
  return ignoring([...defaults, ...readFileSync(file, "utf8").split(/\r?\n/)]);
}

/** Lists the files below a directory, sorted, as entries below `to` in the image. Sockets and devices are left out. */
export async function readContext(
  folder: string,
  ignore: Ignore,
  { to = APP_DIRECTORY, signal }: { to?: string; signal: AbortSignal },
): Promise<BuildContext> {
  const context: BuildContext = { entries: [], bytes: 0 };
  await readInto(context, { folder, ignore, to, signal }, "");
  return context;
}

/** Warns of a directory that probably has more than the app needs. */
export function warnOfSize(report: Report, bytes: number): void {
  if (bytes > WARN_BYTES)
    report.warn(`the directory has ${megabytes(bytes)} of files. List what the app does not need in .dockerignore.`);
}

interface Reading {
  folder: string;
  ignore: Ignore;
  to: string;
  signal: AbortSignal;
}

async function readInto(context: BuildContext, reading: Reading, below: string): Promise<void> {
  reading.signal.throwIfAborted();
  const names = (await readdir(join(reading.folder, below))).sort();
  for (const name of names) {
    const path = below === "" ? name : `${below}/${name}`;
    const ignored = reading.ignore(path);
    if (ignored && !reading.ignore.hasExceptions) continue;
    const entry = await entryOf(reading, path);
    if (entry === undefined) continue;
    if (!ignored) add(context, entry, reading.folder);
    if (entry.kind === "directory") await readInto(context, reading, path);
  }
}

async function entryOf({ folder, to }: Reading, path: string): Promise<LayerEntry | undefined> {
  const from = join(folder, path);
  const stats = await lstat(from);
  const common = { path: to === "" ? path : `${to}/${path}`, owner: APP_USER, size: 0 };
  if (stats.isSymbolicLink()) return { ...common, kind: "link", mode: 0o777, target: await readlink(from) };
  if (stats.isDirectory()) return { ...common, kind: "directory", mode: MODES.directory };
  if (!stats.isFile()) return undefined;
  const mode = (stats.mode & 0o100) === 0 ? MODES.file : MODES.program;
  return { ...common, kind: "file", mode, size: stats.size, from };
}

function add(context: BuildContext, entry: LayerEntry, folder: string): void {
  context.entries.push(entry);
  context.bytes += entry.size;
  const advice = "List what the app does not need in .dockerignore, one name in a line, and deploy again.";
  if (context.bytes > MAX_BYTES)
    throw new CliError("build_too_large", `${folder} has more than ${MAX_BYTES / 1024 ** 3} GiB of files. ${advice}`);
  if (context.entries.length > MAX_FILES)
    throw new CliError("build_too_large", `${folder} has more than ${MAX_FILES} files. ${advice}`);
}
