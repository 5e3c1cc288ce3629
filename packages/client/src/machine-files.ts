/** Files and directories of one machine. Contents are copied as archives, as by `hibernaut machine cp`. */
import { posix } from "node:path";
import type { CopyClient } from "./copy/copies.ts";
import { ApiError } from "./error.ts";
import type { MachineClient } from "./machine-client.ts";
import type { CallOptions } from "./transport.ts";
import type { FileList, MachinePath } from "./types.ts";

/** The most bytes of a file that are held in memory. For larger ones there is `readArchive`, which streams. */
export const MOST_FILE_BYTES = 64 * 1024 * 1024;
/** Permissions of a file that is new. */
const NEW_MODE = 0o644;

/** The beginning of a file. */
export interface FilePart {
  content: Buffer;
  /** Bytes of the whole file. */
  size_bytes: number;
  /** Whether the file has more than `content`. */
  truncated: boolean;
}

/** Does some work in a machine that runs, and wakes it before if it sleeps. */
export type InRunning = <T>(work: () => Promise<T>, options: CallOptions) => Promise<T>;

/** What the client in Node has besides. */
export type Archives = Pick<CopyClient, "readArchive" | "writeArchive">;

type Client = Archives &
  Pick<MachineClient, "getMachinePath" | "listMachineFiles" | "makeMachineDirectory" | "removeMachineFile">;

/** Paths are absolute. Every method rejects with an `ApiError`: `not_found` for a path that does not exist. */
export class MachineFiles {
  readonly #client: Client;
  readonly #of: [app: string, id: string];
  readonly #running: InRunning;

  constructor(client: Client, of: [app: string, id: string], running: InRunning) {
    this.#client = client;
    this.#of = of;
    this.#running = running;
  }

  /** Returns the contents of a file. Rejects with `payload_too_large` for one with more than {@link MOST_FILE_BYTES}. */
  async read(path: string, options: CallOptions = {}): Promise<Buffer> {
    const { content, truncated, size_bytes: size } = await this.readBeginning(path, MOST_FILE_BYTES, options);
    if (!truncated) return content;
    const message = `${path} has ${size} bytes, and at most ${MOST_FILE_BYTES} are read at once. Use \`readArchive\`, which streams.`;
    throw new ApiError({ code: "payload_too_large", message });
  }

  /** The same as text in UTF-8. */
  async readText(path: string, options: CallOptions = {}): Promise<string> {
    return (await this.read(path, options)).toString("utf8");
  }

  /** Returns the first bytes of a file, at most `most`. Links are followed. */
  readBeginning(path: string, most: number, options: CallOptions = {}): Promise<FilePart> {
    return this.#running(async () => {
      const { leads_to: kind, path: real } = await this.#client.getMachinePath(...this.#of, path, options);
      if (kind !== "file") throw notAFile(path, kind);
      const { beginningIn } = await import("./one-file.ts");
      const archive = await this.#client.readArchive(...this.#of, real, options);
      const { content, size } = await beginningIn(archive, most);
      return { content, size_bytes: size, truncated: size > content.length };
    }, options);
  }

  /**
   * Makes a file, with the directories that lead to it: whole, or not at all. One that is there is replaced and keeps its
   * permissions. It belongs to the image's user.
   */
  write(path: string, content: string | Uint8Array, options: CallOptions = {}): Promise<void> {
    const bytes = typeof content === "string" ? Buffer.from(content) : Buffer.from(content);
    return this.#running(async () => {
      const there = await this.#client.getMachinePath(...this.#of, path, options).catch(unlessMissing);
      if (there?.leads_to === "directory" || path.endsWith("/")) throw notAFile(path, "directory");
      // What a link leads to is written, as a program would.
      const real = there?.leads_to === "file" ? there.path : posix.normalize(path);
      const { archiveOf } = await import("./one-file.ts");
      const directory = posix.dirname(real);
      const put = () =>
        this.#client.writeArchive(
          ...this.#of,
          directory,
          archiveOf(posix.basename(real), bytes, there?.mode ?? NEW_MODE),
          options,
        );
      await put().catch(async (error: unknown) => {
        unlessMissing(error);
        await this.makeDir(directory, options);
        await put();
      });
    }, options);
  }

  /**
   * Copies a file or directory of this computer into the machine, by the rules of `docker cp`: into `there` if that is a
   * directory, and otherwise to that name. Directories are copied whole. Everything belongs to the image's user.
   */
  upload(here: string, there: string, options: CallOptions = {}): Promise<{ target: string }> {
    return this.#running(async () => {
      const { copyIn } = await import("./copy/index.ts");
      return copyIn(this.#client, this.#of, [here, there], options);
    }, options);
  }

  /** The same in the other direction. Nothing is written outside `here`, whatever the machine sends. */
  download(there: string, here: string, options: CallOptions = {}): Promise<{ target: string }> {
    return this.#running(async () => {
      const { copyOut } = await import("./copy/index.ts");
      return copyOut(this.#client, this.#of, [there, here], options);
    }, options);
  }

  /** Lists what is below a directory: by default what is directly in it. Long lists are cut, and say so. */
  list(path: string, { depth, ...options }: CallOptions & { depth?: number } = {}): Promise<FileList> {
    return this.#running(() => this.#client.listMachineFiles(...this.#of, path, { ...options, depth }), options);
  }

  /** Makes a directory, and those that lead to it. Resolves with false if it was there already. */
  makeDir(path: string, options: CallOptions = {}): Promise<boolean> {
    return this.#running(async () => {
      try {
        await this.#client.makeMachineDirectory(...this.#of, path, options);
        return true;
      } catch (error) {
        if (error instanceof ApiError && error.code === "already_exists") return false;
        throw error;
      }
    }, options);
  }

  /** Removes a file, or a directory with all that is below. Links are not followed. */
  async remove(path: string, options: CallOptions = {}): Promise<void> {
    await this.#running(() => this.#client.removeMachineFile(...this.#of, path, options), options);
  }

  /** Returns what is at a path, or undefined. */
  stat(path: string, options: CallOptions = {}): Promise<MachinePath | undefined> {
    return this.#running(() => this.#client.getMachinePath(...this.#of, path, options).catch(unlessMissing), options);
  }
}

function unlessMissing(error: unknown): undefined {
  if (!(error instanceof ApiError && error.code === "not_found")) throw error;
  return undefined;
}

function notAFile(path: string, kind: MachinePath["kind"] | null): ApiError {
  const what =
    kind === null ? "a link that leads nowhere" : kind === "other" ? "a device, pipe or socket" : `a ${kind}`;
  return new ApiError({
    code: "invalid_argument",
    message: `${path} is ${what}, and not a file. Choose another path.`,
  });
}
