/** A repository of restic, as backups use it. */
import { createHash } from "node:crypto";
import { HibernautError } from "@hibernaut/domain/errors";
import { saysAbsent } from "./failures.ts";
import type { FoundManifest, Snapshot } from "./garbage.ts";
import { MANIFEST_FILE, type Manifest, parseManifest } from "./manifest.ts";
import type { ManifestCache } from "./manifest-cache.ts";
import { feedRestic, type ResticAccess, readRestic, runRestic } from "./restic.ts";

/** How long commands that read or write little may take, in milliseconds: over a slow line, with many snapshots. */
const SHORT_MS = 10 * 60_000;
/** How long commands may take that go through the whole repository, in milliseconds. */
const LONG_MS = 24 * 60 * 60_000;
/** How fast a target takes files at least, in bytes per millisecond (1 MB/s). What is slower hangs. */
const SLOWEST = 1000;
/** No timer of Node is longer, in milliseconds: 24 days. */
const LONGEST_MS = 2 ** 31 - 1;
/** A manifest of 10,000 pieces has 4 MB. Bytes. */
const MAX_MANIFEST_BYTES = 64 * 1024 * 1024;
/** How many processes read manifests at once. Each derives its key for half a second of CPU time and takes up to 60 MB. */
const READS_AT_A_TIME = 4;
/** All snapshots that this program makes have it. */
const TAG = "hibernaut";
const BACKUP = ["backup", "--json", "--quiet"];
const STORING = "The backup could not be stored";

/** What is stored as one file of its own snapshot. */
interface Stored {
  /** The name of the file. */
  file: string;
  set: string;
  platform: string;
  kind: "piece" | "manifest";
  source: AsyncIterable<Buffer>;
  signal: AbortSignal;
}

/** Files that restic reads by itself, as a snapshot of their own. */
interface StoredInPlace extends Pick<Stored, "set" | "platform" | "signal"> {
  files: readonly { at: string; bytes: number }[];
}

/** What became of it. */
interface StoredContent {
  /** The beginning of the snapshot's id: restic tells no more of it. */
  snapshot: string;
  bytes: number;
  /** Bytes that were not in the repository before. */
  added: number;
}

interface SnapshotDocument {
  id: string;
  time: string;
  paths: string[];
  tags?: string[];
}

export class Repository {
  readonly #access: ResticAccess;
  /** Manifests never change, and their snapshots' ids are sums of them. */
  readonly #manifests: ManifestCache | undefined;

  /** `manifests` keeps those that were read. Without it, each is read whenever it is needed. */
  constructor(access: ResticAccess, manifests?: ManifestCache) {
    this.#access = access;
    this.#manifests = manifests;
  }

  /** Whether there is a repository that the key opens. False only if there is none. */
  async isThere(signal: AbortSignal): Promise<boolean> {
    try {
      await this.#run(["cat", "config", "--no-lock"], "The repository cannot be opened", signal);
      return true;
    } catch (error) {
      const { restic } = error instanceof HibernautError ? error.details : {};
      if (typeof restic === "string" && saysAbsent(restic)) return false;
      throw error;
    }
  }

  /** Makes the repository. Rejects when there is one. */
  async create(signal: AbortSignal): Promise<void> {
    await this.#run(["init"], "The repository cannot be made", signal);
  }

  /** Removes the locks of processes of this host that have ended, and old ones. Those of others stay. */
  async removeStaleLocks(signal: AbortSignal): Promise<void> {
    await this.#run(["unlock"], "Old locks cannot be removed", signal);
  }

  /** Lists the snapshots of all platforms, oldest first. */
  async snapshots(signal: AbortSignal): Promise<Snapshot[]> {
    return (await this.#documents(signal)).map((document) => {
      const value = (name: string) => document.tags?.find((tag) => tag.startsWith(`${name}=`))?.slice(name.length + 1);
      return {
        id: document.id,
        time: document.time,
        file: document.paths[0]?.slice(1) ?? "",
        set: value("set") ?? "",
        platform: value("platform") ?? "",
        isManifest: value("kind") === "manifest",
      };
    });
  }

  /** Reads the manifests among some snapshots. One that cannot be read is a reason, not an error. */
  async manifests(snapshots: readonly Snapshot[], signal: AbortSignal): Promise<FoundManifest[]> {
    const wanted = snapshots.filter(({ isManifest }) => isManifest);
    const found: FoundManifest[] = [];
    for (let from = 0; from < wanted.length; from += READS_AT_A_TIME) {
      // All have ended before one that failed is told: no restic is left behind.
      const reads = await Promise.allSettled(
        wanted.slice(from, from + READS_AT_A_TIME).map((snapshot) => this.#found(snapshot, signal)),
      );
      for (const read of reads) {
        if (read.status === "rejected") throw read.reason;
        found.push(read.value);
      }
    }
    return found;
  }

  /** Lists the snapshots, and reads all manifests among them. */
  async all(signal: AbortSignal): Promise<{ snapshots: Snapshot[]; manifests: FoundManifest[] }> {
    const snapshots = await this.snapshots(signal);
    return { snapshots, manifests: await this.manifests(snapshots, signal) };
  }

  /** Keeps a manifest that was just stored and read back, so that it need not be read once more. */
  async remember({ id }: Snapshot, json: string): Promise<void> {
    await this.#manifests?.put(id, json);
  }

  /**
   * Stores a file as a snapshot of its own. Rejects when the source does, with nothing stored that looks whole, and when restic
   * did not store exactly what it was given.
   */
  async store({ file, set, platform, kind, source, signal }: Stored): Promise<StoredContent & { sha256: string }> {
    const hash = createHash("sha256");
    let bytes = 0;
    async function* counted() {
      for await (const chunk of source) {
        hash.update(chunk);
        bytes += chunk.length;
        yield chunk;
      }
      // restic would store nothing as a file of nothing.
      if (bytes === 0) throw new HibernautError("internal", `${file} of the backup is empty.`);
    }
    const args = [...BACKUP, "--stdin", "--stdin-filename", file, ...tagsOf({ set, platform, kind })];
    const printed = await feedRestic(this.#access, { args, what: STORING, source: counted(), signal });
    return { ...this.#stored(printed, { what: file, bytes }), sha256: hash.digest("hex") };
  }

  /**
   * Has restic read files where they are. One that it knows from its latest snapshot of just these files, and that nobody has
   * written to since, it does not read again. Rejects when it did not store as many bytes as the files have.
   */
  async storeInPlace({ files, set, platform, signal }: StoredInPlace): Promise<StoredContent> {
    const paths = files.map(({ at }) => at);
    const args = [...BACKUP, ...tagsOf({ set, platform, kind: "piece" }), "--", ...paths];
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    const timeoutMs = Math.min(Math.max(LONG_MS, bytes / SLOWEST), LONGEST_MS);
    const printed = await this.#run(args, STORING, signal, timeoutMs);
    return this.#stored(printed, { what: paths.join(" and "), bytes });
  }

  #stored(printed: string, { what, bytes }: { what: string; bytes: number }): StoredContent {
    const summary = summaryOf(printed);
    if (summary?.total_bytes_processed === bytes && bytes > 0)
      return { snapshot: summary.snapshot_id, bytes, added: summary.data_added };
    const arrived = summary?.total_bytes_processed ?? 0;
    throw new HibernautError(
      "unavailable",
      `${STORING}: ${arrived} of ${bytes} bytes of ${what} arrived at ${this.#access.place}. Back up again.`,
    );
  }

  /** Yields a stored file. `path` is that in the snapshot. */
  read(snapshot: string, path: string, signal: AbortSignal): AsyncGenerator<Buffer, void> {
    const args = ["dump", "--no-lock", "--quiet", snapshot, path];
    return readRestic(this.#access, { args, what: "The backup cannot be read", signal });
  }

  /** Rejects unless a stored file is exactly what it should be. */
  async compare(
    { snapshot, file, bytes, sha256 }: { snapshot: string; file: string; bytes: number; sha256: string },
    signal: AbortSignal,
  ): Promise<void> {
    for await (const chunk of compared(this.read(snapshot, `/${file}`, signal), { file, bytes, sha256 })) void chunk;
  }

  /** Checks that nothing is missing, and reads stored data: all, some bytes of it chosen at random, or none. */
  async check(readData: "all" | number, signal: AbortSignal): Promise<void> {
    const data =
      readData === "all" ? ["--read-data"] : readData === 0 ? [] : [`--read-data-subset=${megabytes(readData)}M`];
    await this.#run(["check", ...data], "The check failed", signal, LONG_MS);
  }

  /** Forgets snapshots, and deletes what only they need. */
  async forget(snapshots: readonly string[], signal: AbortSignal): Promise<void> {
    if (snapshots.length === 0) return;
    // The repository is locked in between. Command lines have a limit.
    for (let from = 0; from < snapshots.length; from += 500)
      await this.#run(["forget", ...snapshots.slice(from, from + 500)], "Old backups cannot be deleted", signal);
    await this.#run(["prune"], "Old backups cannot be deleted", signal, LONG_MS);
    await this.#manifests?.drop(snapshots);
  }

  async #found({ id, set, platform }: Snapshot, signal: AbortSignal): Promise<FoundManifest> {
    const known = (await this.#manifests?.get(id)) ?? (await this.#manifest(id, signal));
    const fits = typeof known === "string" || (known.set === set && known.platform === platform);
    return { snapshot: id, manifest: fits ? known : "is of another set than its snapshot says" };
  }

  async #manifest(id: string, signal: AbortSignal): Promise<Manifest | string> {
    const parts: Buffer[] = [];
    let bytes = 0;
    try {
      for await (const chunk of this.read(id, `/${MANIFEST_FILE}`, signal)) {
        bytes += chunk.length;
        if (bytes > MAX_MANIFEST_BYTES) return "is too long";
        parts.push(chunk);
      }
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof HibernautError && error.code === "failed_precondition")
        return `cannot be read: ${error.message}`;
      // The server may be back in a moment.
      throw error;
    }
    const json = Buffer.concat(parts).toString("utf8");
    const manifest = parseManifest(json);
    if (typeof manifest === "object") await this.#manifests?.put(id, json);
    return manifest;
  }

  async #documents(signal: AbortSignal): Promise<SnapshotDocument[]> {
    const args = ["snapshots", "--json", "--no-lock", "--tag", TAG];
    const json = await this.#run(args, "The backups cannot be listed", signal);
    return ((JSON.parse(json) as SnapshotDocument[] | null) ?? []).toSorted(
      (a, b) => Date.parse(a.time) - Date.parse(b.time),
    );
  }

  #run(args: readonly string[], what: string, signal: AbortSignal, timeoutMs = SHORT_MS): Promise<string> {
    return runRestic(this.#access, { args, what, signal, timeoutMs });
  }
}

/** Yields what is read, and throws at the end unless it is what was stored. */
export async function* compared(
  source: AsyncIterable<Buffer>,
  { file, bytes, sha256 }: { file: string; bytes: number; sha256: string },
): AsyncGenerator<Buffer, void> {
  const hash = createHash("sha256");
  let read = 0;
  for await (const chunk of source) {
    hash.update(chunk);
    read += chunk.length;
    yield chunk;
  }
  if (read === bytes && hash.digest("hex") === sha256) return;
  const why = read === bytes ? "its content is not what was stored" : `it has ${read} bytes in place of ${bytes}`;
  throw new HibernautError("failed_precondition", `${file} of the backup is damaged: ${why}. Use another backup.`);
}

function tagsOf({ set, platform, kind }: Pick<Stored, "set" | "platform" | "kind">): string[] {
  return [TAG, `set=${set}`, `platform=${platform}`, `kind=${kind}`].flatMap((tag) => ["--tag", tag]);
}

interface Summary {
  snapshot_id: string;
  total_bytes_processed: number;
  data_added: number;
}

/** The last line that restic prints. Undefined if that is anything else. */
function summaryOf(stdout: string): Summary | undefined {
  try {
    const last = JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as Summary & { message_type?: unknown };
    return last.message_type === "summary" ? last : undefined;
  } catch {
    return undefined;
  }
}

function megabytes(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / 1024 ** 2));
}
