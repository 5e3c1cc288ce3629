/**
 * Manifests that were read, on the disk: they never change, and to read one from a target takes a process. Each file begins with a
 * sum of the rest, so that a damaged one is read from the target again. The names are those of the manifests' snapshots.
 */
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ifAbsent } from "@hibernaut/lib/absence";
import { type Manifest, parseManifest } from "./manifest.ts";

/** The name of the directory in that of restic's cache. */
export const MANIFESTS_FOLDER = "manifests";
/** What the files may take, in bytes: 4,000 manifests of 100 machines, or ten years of nightly backups. */
const MOST_BYTES = 256 * 1024 ** 2;
const SNAPSHOT = /^[0-9a-f]{64}$/;

/** The manifests of all targets of one data directory. */
export class ManifestCache {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Returns a manifest as it was read; undefined when it has to be read from the target. */
  async get(snapshot: string): Promise<Manifest | undefined> {
    // Whatever is wrong with the copy: the target has the original.
    const text = await readFile(this.#fileOf(snapshot), "utf8").catch(() => undefined);
    if (text === undefined) return undefined;
    const [sum = "", ...rest] = text.split("\n");
    const json = rest.join("\n");
    if (sum !== sumOf(json)) return undefined;
    const manifest = parseManifest(json);
    return typeof manifest === "string" ? undefined : manifest;
  }

  /** Keeps a manifest that was read. Where that cannot be written, it is read again the next time: no backup fails for it. */
  async put(snapshot: string, json: string): Promise<void> {
    const file = this.#fileOf(snapshot);
    const draft = `${file}.tmp`;
    try {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      await writeFile(draft, `${sumOf(json)}\n${json}`, { mode: 0o600 });
      await rename(draft, file);
    } catch {
      await rm(draft, { force: true }).catch(() => {}); // the next one to be kept replaces it
    }
  }

  /** Deletes manifests whose snapshots are gone. */
  async drop(snapshots: readonly string[]): Promise<void> {
    for (const snapshot of snapshots) await rm(this.#fileOf(snapshot), { force: true });
  }

  /** Deletes the ones that were read first, until the rest has room. */
  async bound(most = MOST_BYTES): Promise<void> {
    const files: { path: string; bytes: number; at: number }[] = [];
    for (const name of await readdir(this.#folder).catch(ifAbsent([]))) {
      const path = join(this.#folder, name);
      const found = await stat(path).catch(ifAbsent(undefined));
      if (found !== undefined) files.push({ path, bytes: found.size, at: found.mtimeMs });
    }
    let bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    for (const file of files.toSorted((a, b) => a.at - b.at)) {
      if (bytes <= most) return;
      await rm(file.path, { force: true });
      bytes -= file.bytes;
    }
  }

  #fileOf(snapshot: string): string {
    // It comes from the target, and becomes a path.
    if (!SNAPSHOT.test(snapshot)) throw new Error(`${snapshot.slice(0, 80)} is not the id of a snapshot`);
    return join(this.#folder, snapshot);
  }
}

function sumOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
