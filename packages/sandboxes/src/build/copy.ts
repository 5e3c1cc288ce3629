/** Copies uploaded files into the machine of a build. */
import { posix } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ProgramDefaults } from "@hibernaut/domain/sandbox";
import { ifRefused, Refusal } from "../failure.ts";
import { Files } from "../inside/files.ts";
import { saidBy } from "../inside/guest.ts";
import { MOST_SAID_BYTES } from "../inside/limits.ts";
import { FileType } from "../inside/protocol/files_pb.ts";
import { openArchive } from "./archive.ts";
import type { BuildMachine } from "./machine.ts";
import { below, bytesOf, sourceOf } from "./place.ts";
import type { Step } from "./steps.ts";

type CopyStep = Extract<Step, { type: "COPY" }>;

/**
 * Unpacks an archive where the step says. A single file goes into a directory, if the target is one or ends with a slash, and
 * else becomes the target; of a directory, what is in it goes into the target, and what a pattern has found, with the
 * directories below the pattern. Rejects with a {@link Refusal}.
 */
export async function copyInto(
  machine: BuildMachine,
  { source: text, target, user, mode }: CopyStep,
  archive: Readable,
  defaults: ProgramDefaults,
  signal: AbortSignal,
): Promise<void> {
  const owner = await machine.guest.user(user ?? defaults.user);
  const files = new Files(machine.guest, { user: owner, workdir: defaults.workdir, signal });
  const source = sourceOf(text);
  const { first, rewritten } = await openArchive(archive);
  if (first === undefined) throw new Refusal(400, "There are no files to copy.");
  const single = !source.pattern && first.kind !== "directory" && below(source, first.path) === "";
  const isDirectory = !single || target.endsWith("/") || (await files.statIfThere(target))?.type === FileType.DIRECTORY;
  const folder = await directoryAt(files, isDirectory ? target : posix.dirname(target));
  const only = isDirectory ? posix.basename(text) : posix.basename(target);
  const nameOf = (path: string) => below(source, path) || (single ? bytesOf(only) : "");
  const task = machine.guest.begin("copy-in", [folder, "image"], { user: owner, input: true, signal });
  // What the task refuses, it says; that it reads no more is of no interest then.
  const sent = pipeline(Readable.from(rewritten({ nameOf, mode })), task.command.stdin, { signal });
  const [wrote, done] = await Promise.allSettled([
    sent.catch((error: unknown) => {
      task.command.kill("the files cannot be read");
      throw error;
    }),
    saidBy(task.command, MOST_SAID_BYTES).then(() => task.ended),
  ]);
  signal.throwIfAborted();
  if (wrote.status === "rejected" && wrote.reason instanceof Refusal) throw wrote.reason;
  if (done.status === "rejected") throw done.reason;
  if (wrote.status === "rejected") throw wrote.reason;
}

/** Makes a directory and those that lead to it, unless it is there, and returns what it is called in full. */
export async function directoryAt(files: Files, path: string): Promise<string> {
  const made = await files.makeDirectory(path).catch(ifRefused(409));
  return (made ?? (await files.stat(path))).path;
}
