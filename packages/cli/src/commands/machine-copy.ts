/** `hibernaut machine cp`: copies files between this computer and a machine. */
import { lstat, realpath, stat } from "node:fs/promises";
import { basename, posix, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { ApiError, type MachinePath } from "@hibernaut/client";
import { command, type Result } from "../command.ts";
import type { Context } from "../context.ts";
import { type Ends, readEnds } from "../copy/ends.ts";
import { type Plan, planCopy, type Source, type Target } from "../copy/plan.ts";
import { CopyProgress } from "../copy/progress.ts";
import { UsageError } from "../failure.ts";
import { interruptible } from "../interrupting.ts";
import { megabytes } from "../terminal.ts";
import { awake, NO_WAKE } from "../waking.ts";
import { machineOf } from "../which-machine.ts";

type Into = Ends & { into: true };
type Out = Ends & { into: false };

interface Copy {
  context: Context;
  id: string;
  archive: boolean;
  signal: AbortSignal;
}

export const copy = command({
  name: "cp",
  aliases: ["copy"],
  summary: "Copy files between this computer and a machine",
  description:
    "Wakes the machine if it sleeps. A path in a machine is written <id>:<path>, or :<path> for the only machine of the app. Directories are copied whole. If the target is a directory, the copy goes into it; otherwise it gets the target's name. A source that ends in /. means the content of a directory. - is a tar archive on standard input or output. The image needs no program for it.",
  arguments: [
    { usage: "<source>", description: "a path here, <id>:<path>, or -", names: "file" },
    { usage: "<target>", description: "a path here, <id>:<path>, or -", names: "file" },
  ],
  options: [{ flags: "--archive", description: "keep owners (default: the image's user, and here you)" }, NO_WAKE],
  ofApp: true,
  examples: [
    "hibernaut machine cp ./seed.sql 3f9c01ab22de41:/srv/seed.sql --app shop",
    "hibernaut machine cp web-2:/var/log/app ./logs",
    "tar c . | hibernaut machine cp - :/srv",
  ],
  async run(context, [from = "", to = ""], { archive = false, ...waking }) {
    const ends = readEnds(from, to);
    if (context.json && !ends.into && ends.to.at === "stream")
      throw new UsageError("With --json, standard output is for the document. Copy to a file instead of -.");
    const machine = await machineOf(context, ends.into ? ends.to.machine : ends.from.machine);
    const { id } = machine;
    await awake(context, machine, "cp", waking);
    using stop = interruptible("The copy was interrupted.");
    const { signal } = stop;
    try {
      const work = { context, id, archive, signal };
      return await (ends.into ? copyInto(work, ends) : copyOut(work, ends));
    } catch (error) {
      // Streams that were destroyed may say something else.
      throw signal.aborted ? signal.reason : error;
    }
  },
});

async function copyInto({ context, id, archive, signal }: Copy, { from, to }: Into): Promise<Result> {
  const client = await context.client();
  const { pack } = await import("../copy/pack.ts");
  let plan: Plan = { directory: to.path, name: undefined };
  if (from.at === "here") plan = planCopy(await sourceHere(from.path), await targetThere(context, id, to.path));
  const skipped = (path: string) => context.say(`Skipped ${path}: it is neither a file nor a directory.`);
  const source = from.at === "here" ? pack(from.path, plan.name, skipped) : process.stdin;
  const progress = new CopyProgress(`Copying to ${id}`, context);
  source.on("error", (error) => progress.counter.destroy(error));
  try {
    const body = source.pipe(progress.counter);
    const owner = archive ? "archive" : "image";
    const copied = await client.writeArchive(context.app, id, plan.directory, body, { owner, signal });
    const target = plan.name === undefined ? plan.directory : posix.join(plan.directory, plan.name);
    return { document: { machine_id: id, target, ...copied }, text: said(copied, `${id}:${target}`) };
  } finally {
    progress.end();
    source.destroy();
  }
}

async function copyOut({ context, id, archive, signal }: Copy, { from, to }: Out): Promise<Result> {
  const client = await context.client();
  if (to.at === "stream") {
    const whole = await client.readArchive(context.app, id, from.path, { signal });
    await pipeline(whole, process.stdout, { end: false });
    return { document: undefined, text: "" };
  }
  const plan = planCopy(await sourceThere(context, id, from.path), await targetHere(to.path));
  const { unpack } = await import("../copy/unpack.ts");
  const whole = await client.readArchive(context.app, id, from.path, { signal });
  const progress = new CopyProgress(`Copying from ${id}`, context);
  whole.on("error", (error) => progress.counter.destroy(error));
  try {
    const copied = await unpack(whole.pipe(progress.counter), { ...plan, archive });
    const target = resolve(plan.directory, plan.name ?? ".");
    return { document: { machine_id: id, target, ...copied }, text: said(copied, target) };
  } finally {
    progress.end();
    whole.destroy();
  }
}

async function sourceHere(path: string): Promise<Source> {
  const found = await lstat(path).catch(missing);
  if (found === undefined) throw new UsageError(`${path} does not exist. Check the path.`);
  return { path, directory: found.isDirectory(), base: basename(resolve(path)) };
}

async function targetHere(path: string): Promise<Target> {
  const found = await stat(path).catch(missing);
  if (found === undefined) return { path, kind: undefined };
  const kind = found.isDirectory() ? "directory" : found.isFile() ? "file" : "other";
  return { path, kind, real: await realpath(path) };
}

async function sourceThere(context: Context, id: string, path: string): Promise<Source> {
  const { kind } = await (await context.client()).getMachinePath(context.app, id, path);
  return { path, directory: kind === "directory", base: posix.basename(posix.resolve(path)) };
}

async function targetThere(context: Context, id: string, path: string): Promise<Target> {
  const client = await context.client();
  const found = await client.getMachinePath(context.app, id, path).catch((error: unknown): MachinePath | undefined => {
    if (error instanceof ApiError && error.code === "not_found") return undefined;
    throw error;
  });
  if (found === undefined) return { path, kind: undefined };
  const kind = found.leads_to === "directory" || found.leads_to === "file" ? found.leads_to : "other";
  // A link that leads nowhere is replaced by the copy.
  if (found.leads_to === null) return { path, kind: "file", real: path };
  return { path, kind, real: found.path };
}

function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

function said({ entries, bytes }: { entries: number; bytes: number }, target: string): string {
  return `Copied ${entries} ${entries === 1 ? "entry" : "entries"}, ${megabytes(bytes)}, to ${target}.`;
}
