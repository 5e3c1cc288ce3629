/** Unpacks an archive from a machine on this computer. Nothing is written outside the directory, whatever it contains. */
import { randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { chmod, chown, lchown, lstat, mkdir, rename, rm, symlink, utimes } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { extract, type Header } from "tar-stream";
import { ApiError } from "../error.ts";
import { checkLink, entryPath, refused } from "./entry-path.ts";
import { ArchiveGuard, unreadable } from "./guard.ts";
import type { Plan } from "./plan.ts";

/** Permissions that are kept. Set-user-ID and the like only with `--archive`: the files belong to someone else here. */
const PERMISSIONS = 0o777;
const ALL_MODES = 0o7777;

export interface UnpackOptions extends Plan {
  /** Keep the owners of the archive, which takes root. */
  archive: boolean;
}

export interface Copied {
  entries: number;
  bytes: number;
}

/** Unpacks an archive whose entries begin with one name, which `name` replaces. */
export async function unpack(archive: Readable, options: UnpackOptions): Promise<Copied> {
  const unpacker = new Unpacker(options);
  const parser = extract();
  const read = pipeline(archive, new ArchiveGuard(), parser as unknown as NodeJS.WritableStream);
  read.catch(() => {}); // The loop below fails as well.
  let copied = { entries: 0, bytes: 0 };
  try {
    for await (const entry of parser) {
      await unpacker.take(entry.header, entry as unknown as Readable);
      entry.resume();
      copied = { entries: copied.entries + 1, bytes: copied.bytes + (entry.header.size ?? 0) };
    }
    await unpacker.finish();
  } catch (error) {
    // What the connection says is more useful than that the archive ended early.
    await read.catch((cause: unknown) => {
      if (cause instanceof ApiError) throw cause;
    });
    if (error instanceof ApiError || isSystemError(error)) throw error;
    throw unreadable((error as Error).message);
  } finally {
    archive.destroy();
  }
  await read;
  return copied;
}

class Unpacker {
  readonly #options: UnpackOptions;
  /** The name that all entries begin with. */
  #root: string[] | undefined;
  /** The directory that was checked last: most entries follow others in the same one. */
  #checked: string | undefined;
  /** Directories that were created and are being filled: they get their permissions when they are left. */
  readonly #open: { path: string; mode: number }[] = [];

  constructor(options: UnpackOptions) {
    this.#options = options;
  }

  async take(header: Header, content: Readable): Promise<void> {
    const parts = this.#below(header.name);
    const path = join(this.#options.directory, ...parts);
    await this.#leave(path);
    if (parts.length === 0) {
      if (header.type !== "directory") throw refused(header.name, "has no name");
      return;
    }
    await this.#check(parts.slice(0, -1), header.name);
    if (header.type === "directory") await this.#directory(header, path);
    else if (header.type === "file" || header.type === "contiguous-file") await this.#file(header, path, content);
    else if (header.type === "symlink") await this.#link(header, path);
    else throw refused(header.name, `is a ${header.type}, which cannot be copied`);
  }

  /** Gives the last directories their permissions. */
  async finish(): Promise<void> {
    await this.#leave(undefined);
  }

  /** The parts of a name with `name` in the place of the archive's own. */
  #below(name: string): string[] {
    const parts = entryPath(name);
    this.#root ??= parts;
    if (this.#root.length > 1 || this.#root.some((part, index) => parts[index] !== part))
      throw refused(name, "is not part of what was requested");
    const { name: wanted } = this.#options;
    return [...(wanted === undefined ? [] : [wanted]), ...parts.slice(this.#root.length)];
  }

  /** Makes sure that the directory is one, and that no link leads to it. */
  async #check(parts: readonly string[], name: string): Promise<void> {
    const wanted = join(this.#options.directory, ...parts);
    if (wanted === this.#checked) return;
    let path = this.#options.directory;
    for (const part of parts) {
      path = join(path, part);
      const found = await kindOf(path);
      if (found === undefined) await mkdir(path);
      else if (found !== "directory") throw refused(name, "would be written through a link, or below a file");
    }
    this.#checked = wanted;
  }

  async #directory(header: Header, path: string): Promise<void> {
    const found = await kindOf(path);
    // A directory that exists keeps its permissions.
    if (found === "directory") return;
    if (found !== undefined) throw refused(header.name, "is a directory, and a file of that name exists here");
    await mkdir(path, { mode: 0o700 });
    if (this.#options.archive) await chown(path, header.uid ?? 0, header.gid ?? 0);
    this.#open.push({ path, mode: this.#mode(header, 0o755) });
  }

  async #file(header: Header, path: string, content: Readable): Promise<void> {
    await replace(header.name, path, async (temp) => {
      await pipeline(content, createWriteStream(temp, { flags: "wx", mode: 0o600 }));
      if (this.#options.archive) await chown(temp, header.uid ?? 0, header.gid ?? 0);
      await chmod(temp, this.#mode(header, 0o644));
      await utimes(temp, new Date(), header.mtime ?? new Date());
    });
  }

  async #link(header: Header, path: string): Promise<void> {
    const target = header.linkname ?? "";
    checkLink(header.name, target);
    await replace(header.name, path, async (temp) => {
      await symlink(target, temp);
      if (this.#options.archive) await lchown(temp, header.uid ?? 0, header.gid ?? 0);
    });
  }

  #mode({ mode }: Header, otherwise: number): number {
    return (mode ?? otherwise) & (this.#options.archive ? ALL_MODES : PERMISSIONS);
  }

  /** Directories that `path` is not below are complete. */
  async #leave(path: string | undefined): Promise<void> {
    for (let last = this.#open.at(-1); last !== undefined; last = this.#open.at(-1)) {
      if (path?.startsWith(`${last.path}/`)) return;
      this.#open.pop();
      await chmod(last.path, last.mode);
    }
  }
}

/** Makes a file or link under a new name in the same directory, so that it gets the right one in a single step. */
async function replace(name: string, path: string, make: (temp: string) => Promise<void>): Promise<void> {
  const temp = join(path, "..", `.hibernaut-${randomBytes(8).toString("hex")}`);
  try {
    await make(temp);
    if ((await kindOf(path)) === "directory")
      throw refused(name, "is not a directory, and one of that name exists here");
    await rename(temp, path);
  } catch (error) {
    await rm(temp, { force: true });
    throw error;
  }
}

async function kindOf(path: string): Promise<"directory" | "other" | undefined> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  return found === undefined ? undefined : found.isDirectory() ? "directory" : "other";
}

function isSystemError(error: unknown): boolean {
  return error instanceof Error && "syscall" in error && "path" in error;
}
