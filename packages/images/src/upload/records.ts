/** Which uploads are open, on the disk: one small file for each, in `images/blobs/uploads/`. */
import { mkdir, readdir, readFile, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { ifAbsent } from "@hibernaut/lib/absence";
import { flush, replaceFile } from "@hibernaut/lib/durable";

/** What is kept of an upload. Its manifest is a blob in the layer cache. */
interface UploadRecord {
  format: 1;
  digest: string;
  /** The name in the reference. */
  name: string;
}

/** The files of open uploads. The time of a file is when its upload was last used. */
export class UploadRecords {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Lists all uploads. Files that cannot be read as one are deleted: their uploads begin again. */
  async list(): Promise<{ digest: string; name: string; usedAtMs: number }[]> {
    // Absent until something is uploaded.
    const names = await readdir(this.#folder).catch(ifAbsent([]));
    const found = await Promise.all(names.map((file) => this.#read(join(this.#folder, file))));
    return found.filter((record) => record !== undefined);
  }

  /** Stores an upload. It is on the disk when this resolves. */
  async put(digest: string, name: string): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const record: UploadRecord = { format: 1, digest, name };
    await replaceFile(this.#file(digest), `${JSON.stringify(record)}\n`, { mode: 0o600 });
  }

  /** Records that an upload was used now. */
  async touch(digest: string): Promise<void> {
    const now = new Date();
    // Absent when it has just ended.
    await utimes(this.#file(digest), now, now).catch(ifAbsent(undefined));
  }

  /** Deletes an upload's file. */
  async delete(digest: string): Promise<void> {
    await rm(this.#file(digest), { force: true });
    await flush(this.#folder);
  }

  async #read(file: string): Promise<{ digest: string; name: string; usedAtMs: number } | undefined> {
    try {
      const { format, digest, name } = JSON.parse(await readFile(file, "utf8")) as Partial<UploadRecord>;
      if (format === 1 && typeof digest === "string" && typeof name === "string" && file === this.#file(digest))
        return { digest, name, usedAtMs: (await stat(file)).mtimeMs };
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
    await rm(file, { force: true });
    return undefined;
  }

  #file(digest: string): string {
    return join(this.#folder, `${digest.slice("sha256:".length)}.json`);
  }
}
