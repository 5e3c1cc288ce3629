/** Files that clients upload for builds, by their hash: in a directory for each app, streamed to it, and kept for a while. */
import { randomBytes } from "node:crypto";
import { createReadStream, createWriteStream, type ReadStream } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { type Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { AppRecord } from "@hibernaut/domain/machine";
import { ifAbsent } from "@hibernaut/lib/absence";
import { freeBytes } from "@hibernaut/lib/disk-files";
import { Semaphore } from "@hibernaut/lib/semaphore";
import { messageOf } from "@hibernaut/lib/text";
import type { SandboxNeeds } from "../contract.ts";
import { Refusal } from "../failure.ts";
import {
  DISK_RESERVE_BYTES,
  MOST_UPLOAD_BYTES,
  MOST_UPLOADED_BYTES,
  MOST_UPLOADS,
  MOST_UPLOADS_WAITING,
  UPLOADS_AT_ONCE,
} from "./limits.ts";
import { HASH } from "./steps.ts";
import { type StoredUpload, tooMany, type UploadLimits } from "./upload-room.ts";

/** Whose uploads they are. An app that is made again under the name of another has none of the other's. */
export type Uploader = Pick<AppRecord, "name" | "createdAt">;

const LIMITS: UploadLimits = { bytes: MOST_UPLOAD_BYTES, allBytes: MOST_UPLOADED_BYTES, count: MOST_UPLOADS };
const DRAFT = /\.tmp$/;

export class Uploads {
  readonly #folder: string;
  readonly #limits: UploadLimits;
  readonly #free: typeof freeBytes;
  readonly #turns = new Map<string, Semaphore>();
  /** What uploads in progress may still take of the disk, of all apps, in bytes. */
  #promised = 0;

  /** `folder` is made with the first upload; `free` says how much its disk has left. */
  constructor(folder: string, limits = LIMITS, free = freeBytes) {
    this.#folder = folder;
    this.#limits = limits;
    this.#free = free;
  }

  /** Whether the files are there. From now on, they are kept for their whole time again. */
  async has(app: Uploader, hash: string): Promise<boolean> {
    const now = new Date();
    return utimes(this.#path(app, hash), now, now).then(() => true, ifAbsent(false));
  }

  /** The archive, as it was uploaded. Undefined when it is not there. It can be read whatever becomes of it meanwhile. */
  async read(app: Uploader, hash: string): Promise<ReadStream | undefined> {
    if (!(await this.has(app, hash))) return undefined;
    const handle = await open(this.#path(app, hash)).catch(ifAbsent(undefined));
    return handle && createReadStream("", { fd: handle });
  }

  /** Stores an archive, whole or not at all. Rejects with a {@link Refusal} when it is too large, or the disk too full. */
  async receive(app: Uploader, hash: string, source: Readable, signal: AbortSignal): Promise<void> {
    const folder = this.#folderOf(app);
    const turns = this.#turns.get(folder) ?? new Semaphore(UPLOADS_AT_ONCE);
    this.#turns.set(folder, turns);
    if (turns.waiting >= MOST_UPLOADS_WAITING)
      throw new Refusal(
        429,
        `${MOST_UPLOADS_WAITING} uploads of this app wait already. Try again when some have ended.`,
      );
    await turns.run(() => this.#receive(app, hash, source, signal), signal);
  }

  async #receive(app: Uploader, hash: string, source: Readable, signal: AbortSignal): Promise<void> {
    const folder = this.#folderOf(app);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const room = await this.#room(folder);
    if (room <= 0)
      throw new Refusal(507, "The disk of the server is too full for uploads. Its operator has to make room.");
    this.#promised += room;
    const path = this.#path(app, hash);
    const draft = `${path}.${randomBytes(8).toString("hex")}.tmp`;
    try {
      await pipeline(source, atMost(room), createWriteStream(draft, { flags: "wx", mode: 0o600 }), { signal });
      await this.#prune(folder, { add: (await stat(draft)).size, except: path });
      await rename(draft, path);
    } catch (error) {
      await rm(draft, { force: true });
      signal.throwIfAborted();
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
      throw new Refusal(507, "The disk of the server is full. Its operator has to make room.");
    } finally {
      this.#promised -= room;
    }
  }

  /** How large the next one may be. What others were promised is theirs, also what of it is on the disk already. */
  async #room(folder: string): Promise<number> {
    return Math.min(this.#limits.bytes, (await this.#free(folder)) - DISK_RESERVE_BYTES - this.#promised);
  }

  /** Does what {@link sweep} does, and deletes what an earlier platform did not receive to its end. Never rejects. */
  async begin(apps: () => readonly Uploader[], log: SandboxNeeds["log"]): Promise<void> {
    try {
      await this.sweep(apps);
      for (const name of await readdir(this.#folder, { recursive: true }).catch(ifAbsent([] as string[])))
        if (DRAFT.test(name)) await rm(join(this.#folder, name), { force: true });
    } catch (error) {
      log.warn({ reason: messageOf(error) }, "uploads for builds could not be looked through");
    }
  }

  /** Deletes what nobody asked for any more, and what belongs to no app. */
  async sweep(apps: () => readonly Uploader[]): Promise<void> {
    const names = await readdir(this.#folder).catch(ifAbsent([] as string[]));
    // Asked for afterwards, so that what is there of a new app is known.
    const known = new Set(apps().map((app) => this.#folderOf(app)));
    for (const folder of names.map((name) => join(this.#folder, name))) {
      if (known.has(folder)) {
        await this.#prune(folder, { add: 0, except: "" });
        continue;
      }
      await rm(folder, { recursive: true, force: true });
      this.#turns.delete(folder);
    }
  }

  /** Makes room for one more of this size, unless it is 0. `except` is the one that it replaces. */
  async #prune(folder: string, { add, except }: { add: number; except: string }): Promise<void> {
    const names = (await readdir(folder)).filter((name) => HASH.test(name));
    const all = await Promise.all(names.map((name) => storedAt(join(folder, name))));
    const others = all.filter((one) => one !== undefined && one.path !== except) as StoredUpload[];
    for (const { path } of tooMany(others, add, { ...this.#limits, now: Date.now() })) await rm(path, { force: true });
  }

  #folderOf({ name, createdAt }: Uploader): string {
    return join(this.#folder, `${name}-${Date.parse(createdAt)}`);
  }

  #path(app: Uploader, hash: string): string {
    // It becomes the name of a file.
    if (!HASH.test(hash)) throw new Refusal(400, "A hash of files is 64 hexadecimal digits.");
    return join(this.#folderOf(app), hash);
  }
}

async function storedAt(path: string): Promise<StoredUpload | undefined> {
  const found = await stat(path).catch(ifAbsent(undefined));
  return found && { path, bytes: found.size, usedMs: found.mtimeMs };
}

/** Ends with a {@link Refusal} when more comes. */
function atMost(bytes: number): Transform {
  let left = bytes;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      left -= chunk.length;
      if (left >= 0) done(null, chunk);
      else done(new Refusal(413, `The files of one step are at most ${Math.floor(bytes / 1024 ** 2)} MB, zipped.`));
    },
  });
}
