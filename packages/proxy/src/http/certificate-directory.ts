/** Certificates from one directory, which is looked at again and again. */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { createSecureContext, type SecureContext } from "node:tls";

/** A certificate with its key. */
interface Pair {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly context: SecureContext;
}

interface DirectoryOptions {
  /** `pairs`: `<name>.crt` or `<name>.pem`, and `<name>.key`. `single`: both are in `<name>.pem`. */
  layout: "pairs" | "single";
  /** Whether a missing directory counts as an empty one. Otherwise it is a fault. */
  mayBeMissing: boolean;
}

export class CertificateDirectory {
  readonly #folder: string;
  readonly #onFault: (error: unknown) => void;
  readonly #options: DirectoryOptions;
  #pairs = new Map<string, Pair>();
  /** Times and sizes of the files that the pairs were read from, by name. */
  #seen = new Map<string, string>();
  #looking: Promise<void> | undefined;

  constructor(folder: string, onFault: (error: unknown) => void, options: DirectoryOptions) {
    this.#folder = folder;
    this.#onFault = onFault;
    this.#options = options;
  }

  /** Returns the pair of a name as files spell it: `_.example.org` for a wildcard. */
  get(name: string): Pair | undefined {
    return this.#pairs.get(name);
  }

  /**
   * Adopts what has changed, and reports what cannot be read. A second call while the first is in progress waits for it:
   * two at once would mistake each other's pairs for their own.
   */
  refresh(): Promise<void> {
    this.#looking ??= this.load()
      .catch((error: unknown) => this.#onFault(error))
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  /** Reads what is new or changed. Rejects if the directory cannot be read. */
  async load(): Promise<void> {
    const pairs = new Map<string, Pair>();
    const seen = new Map<string, string>();
    for (const [name, files] of filesByName(await this.#list(), this.#options.layout)) {
      const known = this.#pairs.get(name);
      try {
        const version = await this.#version(files);
        seen.set(name, version);
        // Seen but not adopted means broken. The pair is tried again when a file changes.
        const pair = this.#seen.get(name) === version ? known : await this.#read(files);
        if (pair !== undefined) pairs.set(name, pair);
      } catch (error) {
        this.#onFault(new Error(`The certificate of ${name} cannot be used.`, { cause: error }));
        if (known !== undefined) pairs.set(name, known);
      }
    }
    this.#pairs = pairs;
    this.#seen = seen;
  }

  #list(): Promise<string[]> {
    return readdir(this.#folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT" && this.#options.mayBeMissing) return [];
      throw error;
    });
  }

  async #version(files: readonly string[]): Promise<string> {
    const states = await Promise.all(files.map((file) => stat(join(this.#folder, file))));
    return states.map(({ mtimeMs, size, ino }) => `${mtimeMs} ${size} ${ino}`).join(", ");
  }

  async #read([certificate, keyFile]: readonly [string, string]): Promise<Pair> {
    const [cert, key] = await Promise.all([this.#file(certificate), this.#file(keyFile)]);
    return { cert, key, context: createSecureContext({ cert, key }) };
  }

  #file(name: string): Promise<Buffer> {
    return readFile(join(this.#folder, name));
  }
}

/** Returns which files have the certificate and the key of each name. */
function filesByName(files: readonly string[], layout: DirectoryOptions["layout"]): Map<string, [string, string]> {
  const names = (end: string) => files.filter((file) => file.endsWith(end)).map((file) => file.slice(0, -end.length));
  if (layout === "single") return new Map(names(".pem").map((name) => [name, [`${name}.pem`, `${name}.pem`]]));
  const found = new Map<string, [string, string]>();
  for (const name of names(".key")) {
    const certificate = [".crt", ".pem"].map((end) => `${name}${end}`).find((file) => files.includes(file));
    if (certificate !== undefined) found.set(name, [certificate, `${name}.key`]);
  }
  return found;
}
