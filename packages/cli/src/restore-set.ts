/** Restores a set from a target into an empty directory, without a platform. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { namedFile, s3Environment } from "./backup/credentials.ts";
import { emptyDirectory, extractAll, requireEmpty } from "./backup/restoring.ts";
import type { Context } from "./context.ts";
import { UsageError } from "./failure.ts";
import { interruptible } from "./interrupting.ts";
import { writtenTime } from "./local-time.ts";
import { given } from "./option-values.ts";

/** From where, with what, and to where. */
interface FromTarget {
  url: string;
  keyFile: string | undefined;
  sshKey: string | undefined;
  at: string | undefined;
  set: string | undefined;
  directory: string;
}

/** What was restored. */
interface RestoredSet {
  set: string;
  at: string;
  apps: string[];
  bytes: number;
}

/** Restores the newest set, or the one that is named. When that fails or is interrupted, the directory is empty again. */
export async function restoreSet(context: Context, wanted: FromTarget): Promise<RestoredSet> {
  const { keyFile, directory, set } = wanted;
  if (keyFile === undefined)
    throw new UsageError("Which key? Add --key-file with the file in which you keep the key of the repository.");
  const at = wanted.at === undefined ? undefined : momentOf(wanted.at);
  const sshKey = wanted.sshKey && (await namedFile(wanted.sshKey));
  // They may be set for other programs.
  const s3 = wanted.url.startsWith("s3") ? s3Environment() : {};
  const secrets = { key: (await namedFile(keyFile)).trim(), ...given({ ...s3, sshKey }) };
  await requireEmpty(directory);
  const { appsOf, sizeOf, Source } = await import("@hibernaut/backup/restore");
  using stop = interruptible("The restore was interrupted. Nothing was restored.");
  const { signal } = stop;
  const folder = await mkdtemp(join(tmpdir(), "hibernaut-restore-"));
  try {
    const place = {
      program: process.env["HIBERNAUT_RESTIC"] || "restic",
      folder,
      knownHosts: join(folder, "known-hosts"),
    };
    await using source = await context.progress(
      `Opening ${wanted.url}`,
      Source.open(wanted.url, secrets, place, signal),
    );
    const manifest = await source.choose({ set, at }, signal);
    await emptyDirectory(directory);
    const archives = source.pieces(manifest, signal);
    await context.progress(`Restoring ${manifest.set} to ${directory}`, extractAll(archives, directory, signal));
    return { set: manifest.set, at: manifest.at, apps: appsOf(manifest), bytes: sizeOf(manifest) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A time without a zone is that of the reader's zone. */
function momentOf(text: string): number {
  const time = Date.parse(writtenTime(text));
  if (Number.isNaN(time)) throw new UsageError(`"${text}" is not a time. Write it as in --at 2026-11-20T03:00.`);
  return time;
}
