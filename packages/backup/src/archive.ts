/**
 * The archive of a backup: a tar archive with sparse files, which `tar` extracts, made of pieces that GNU tar writes one
 * after the other. Its last entry is a checksum of everything before it, so that an archive can be seen to be whole:
 *
 *   entries | backup.sha256: 512 bytes of header, 512 of content | 1024 zero bytes
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { programEnvironment } from "@hibernaut/lib/exec";
import type { Piece } from "./piece.ts";

/** The name of the last entry. */
export const CHECKSUM_FILE = "backup.sha256";
/** Two blocks of zeros end an archive. */
const END_BYTES = 1024;
/** GNU tar's way to say that a file changed while it was read. */
const CHANGED = /file changed as we read it|File removed before we read it/;
/** More complaints than these don't explain the failure better. Characters. */
const MAX_STDERR = 16_384;

/** Files changed while they were read. */
export class FilesChanged extends Error {
  override name = "FilesChanged";
}

/** What `tar` is told of a piece. */
type Files = Pick<Piece, "folder" | "paths" | "immutable" | "lent"> & {
  /** Files below the paths that are left out. */
  without?: readonly string[];
};

/** Counts and sums up what is sent, and makes the end that says so. */
export class Archive {
  readonly #hash = createHash("sha256");
  /** Bytes sent so far. */
  bytes = 0;

  /** Yields the entries of some files. Ends the work when no longer read. Rejects with the signal's reason when aborted. */
  async *add(piece: Files, signal: AbortSignal): AsyncGenerator<Buffer, void> {
    let held: Buffer = Buffer.alloc(0);
    for await (const chunk of tarOf(piece, signal)) {
      // The end of the piece is not the end of the archive.
      const all = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
      const send = all.subarray(0, Math.max(0, all.length - END_BYTES));
      held = Buffer.from(all.subarray(send.length));
      if (send.length === 0) continue;
      this.#hash.update(send);
      this.bytes += send.length;
      yield send;
    }
  }

  /** Yields the last entry and the end of the archive. */
  async *end(folder: string, signal: AbortSignal): AsyncGenerator<Buffer, void> {
    const text = `${this.#hash.digest("hex")} ${this.bytes}\n`;
    await writeFile(join(folder, CHECKSUM_FILE), text, { mode: 0o600 });
    for await (const chunk of tarOf({ folder, paths: [CHECKSUM_FILE], immutable: false }, signal)) {
      this.bytes += chunk.length;
      yield chunk;
    }
  }
}

/**
 * Yields a whole archive of its own. It is written in units of some blocks, and zeros fill the last one: with one block, nothing
 * follows the archive's end, and tar takes twice the CPU time.
 */
export async function* tarOf(
  { folder, paths, immutable, lent, without = [] }: Files,
  signal: AbortSignal,
  blocks = 1,
): AsyncGenerator<Buffer, void> {
  signal.throwIfAborted();
  const form = ["--sparse", "--format=gnu", `--blocking-factor=${blocks}`];
  // What is lent is there by symbolic links.
  const follow = lent === undefined ? [] : ["--dereference"];
  const left =
    without.length === 0 ? [] : ["--anchored", "--no-wildcards", ...without.map((path) => `--exclude=${path}`)];
  const args = ["--create", "--file=-", ...form, ...follow, ...left, `--directory=${folder}`];
  const child = spawn("tar", [...args, "--", ...paths], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...programEnvironment(), LC_ALL: "C" },
  });
  const closed = once(child, "close") as Promise<[number | null]>;
  closed.catch(() => {});
  const abort = () => void child.kill("SIGKILL");
  signal.addEventListener("abort", abort, { once: true });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (stderr.length < MAX_STDERR) stderr += text;
  });
  let ended = false;
  try {
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) yield chunk;
    const [code] = await closed;
    ended = true;
    signal.throwIfAborted();
    const message = `tar ended with code ${code}: ${stderr.trim()}`;
    const changed = code === 1 && stderr.split("\n").every((line) => line === "" || CHANGED.test(line));
    // What is lent may even go. Should it be unreadable, its copy says so.
    if ((changed && !immutable) || (lent !== undefined && code !== 0)) throw new FilesChanged(message);
    if (code !== 0 && !changed) throw new Error(message);
  } finally {
    signal.removeEventListener("abort", abort);
    if (!ended) {
      child.kill("SIGKILL");
      await closed.catch(() => {}); // `tar` could not even be started, which was reported
    }
  }
}
