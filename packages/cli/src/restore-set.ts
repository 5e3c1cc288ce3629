/** Looks at a target without a platform: lists its sets, and restores one into an empty directory. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SetView, Source } from "@hibernaut/backup/restore";
import { namedFile, s3Environment } from "./backup/credentials.ts";
import { emptyDirectory, extractAll, requireEmpty } from "./backup/restoring.ts";
import type { ListedSet } from "./backup/set-list.ts";
import type { Context } from "./context.ts";
import { UsageError } from "./failure.ts";
import { interruptible } from "./interrupting.ts";
import { localTime, writtenTime } from "./local-time.ts";
import { given } from "./option-values.ts";

/** A target, and what opens it. */
interface Target {
  url: string;
  keyFile: string | undefined;
  sshKey: string | undefined;
}

/** What to restore, and to where. */
interface Wanted {
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
  /** Newer sets that cannot be restored. */
  passed_over: Pick<SetView, "set" | "at" | "state" | "reason">[];
}

/** Lists what is at a target, newest first. */
export async function listSets(context: Context, target: Target): Promise<ListedSet[]> {
  using stop = interruptible("Nothing was changed.");
  const sets = await withSource(context, target, stop.signal, (source) => source.sets(stop.signal));
  return sets.map(({ own: _, ...set }) => ({ target: target.url, ...set }));
}

/**
 * Restores the newest set, or the one that is named, and warns of newer ones that cannot be restored. When that fails or is
 * interrupted, the directory is empty again.
 */
export async function restoreSet(context: Context, target: Target, wanted: Wanted): Promise<RestoredSet> {
  const { directory, set } = wanted;
  const at = wanted.at === undefined ? undefined : momentOf(wanted.at);
  await requireEmpty(directory);
  using stop = interruptible("The restore was interrupted. Nothing was restored.");
  const { signal } = stop;
  return await withSource(context, target, signal, async (source) => {
    const { manifest, passedOver } = await source.choose({ set, at }, signal);
    const { appsOf, reasonsOf, sizeOf } = await import("@hibernaut/backup/restore");
    if (passedOver.length > 0)
      context.warn(
        `Newer backups cannot be restored, so this is ${manifest.set}, made at ${localTime(manifest.at)}. ${reasonsOf(passedOver).join(" ")}`,
      );
    await emptyDirectory(directory);
    const archives = source.pieces(manifest, signal);
    await context.progress(`Restoring ${manifest.set} to ${directory}`, extractAll(archives, directory, signal));
    return {
      ...{ set: manifest.set, at: manifest.at, apps: appsOf(manifest), bytes: sizeOf(manifest) },
      passed_over: passedOver.map(({ set: name, at: made, state, reason }) => ({ set: name, at: made, state, reason })),
    };
  });
}

/** Opens a target for as long as it is used. */
async function withSource<T>(
  context: Context,
  { url, keyFile, sshKey: sshKeyFile }: Target,
  signal: AbortSignal,
  use: (source: Source) => Promise<T>,
): Promise<T> {
  if (keyFile === undefined)
    throw new UsageError("Which key? Add --key-file with the file in which you keep the key of the repository.");
  const sshKey = sshKeyFile && (await namedFile(sshKeyFile));
  // They may be set for other programs.
  const s3 = url.startsWith("s3") ? s3Environment() : {};
  const secrets = { key: (await namedFile(keyFile)).trim(), ...given({ ...s3, sshKey }) };
  const { Source } = await import("@hibernaut/backup/restore");
  const folder = await mkdtemp(join(tmpdir(), "hibernaut-restore-"));
  try {
    const program = process.env["HIBERNAUT_RESTIC"] || "restic";
    const place = { program, folder, knownHosts: join(folder, "known-hosts") };
    await using source = await context.progress(`Opening ${url}`, Source.open(url, secrets, place, signal));
    return await use(source);
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
