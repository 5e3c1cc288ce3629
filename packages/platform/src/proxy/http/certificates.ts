/** Certificates from a directory, one pair of files for each hostname. */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { createSecureContext, type SecureContext } from "node:tls";

interface Pair {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly context: SecureContext;
}

/**
 * A directory with `<name>.crt` (or `.pem`, with the chain) and `<name>.key` for each hostname. A pair named
 * `_.example.org` serves all names directly below example.org. A pair named `default` serves every other name, and
 * clients that send no name.
 */
export class Certificates {
  readonly #folder: string;
  readonly #onFault: (error: unknown) => void;
  #pairs = new Map<string, Pair>();
  /** Times and sizes of the files that the pairs were read from, by name. */
  #seen = new Map<string, string>();
  #looking: Promise<void> | undefined;

  private constructor(folder: string, onFault: (error: unknown) => void) {
    this.#folder = folder;
    this.#onFault = onFault;
  }

  /** Reads the directory. Rejects if it cannot be read. A broken pair is reported and left out. */
  static async open(folder: string, onFault: (error: unknown) => void): Promise<Certificates> {
    const certificates = new Certificates(folder, onFault);
    await certificates.#load();
    return certificates;
  }

  /**
   * Adopts what has changed. A pair that is broken, or half written, leaves the old one in place. A second call while
   * the first is in progress waits for it: two at once would mistake each other's pairs for their own.
   */
  refresh(): Promise<void> {
    this.#looking ??= this.#load()
      .catch((error: unknown) => this.#onFault(error))
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  /** Returns what a client gets that asks for `name`: the pair of that name, of its wildcard, or the default. */
  find(name: string): SecureContext | undefined {
    const host = name.toLowerCase();
    const parent = host.slice(host.indexOf(".") + 1);
    const pair = this.#pairs.get(host) ?? this.#pairs.get(`_.${parent}`) ?? this.#pairs.get("default");
    return pair?.context;
  }

  /** The default pair, for clients that send no name; empty if there is none. */
  get fallback(): { cert?: Buffer; key?: Buffer } {
    const pair = this.#pairs.get("default");
    return pair === undefined ? {} : { cert: pair.cert, key: pair.key };
  }

  async #load(): Promise<void> {
    const files = await readdir(this.#folder);
    const keys = files.filter((file) => file.endsWith(".key")).map((file) => file.slice(0, -4));
    const pairs = new Map<string, Pair>();
    const seen = new Map<string, string>();
    for (const name of keys) {
      const certificate = [".crt", ".pem"].map((end) => `${name}${end}`).find((file) => files.includes(file));
      if (certificate === undefined) continue;
      const known = this.#pairs.get(name);
      try {
        const version = await this.#version(certificate, `${name}.key`);
        seen.set(name, version);
        // Seen but not adopted means broken. The pair is tried again when a file changes.
        const pair = this.#seen.get(name) === version ? known : await this.#read(certificate, `${name}.key`);
        if (pair !== undefined) pairs.set(name, pair);
      } catch (error) {
        this.#onFault(new Error(`The certificate of ${name} cannot be used.`, { cause: error }));
        if (known !== undefined) pairs.set(name, known);
      }
    }
    this.#pairs = pairs;
    this.#seen = seen;
  }

  async #version(...files: string[]): Promise<string> {
    const states = await Promise.all(files.map((file) => stat(join(this.#folder, file))));
    return states.map(({ mtimeMs, size, ino }) => `${mtimeMs} ${size} ${ino}`).join(", ");
  }

  async #read(...files: [string, string]): Promise<Pair> {
    const [cert, key] = await Promise.all([this.#file(files[0]), this.#file(files[1])]);
    return { cert, key, context: createSecureContext({ cert, key }) };
  }

  #file(name: string): Promise<Buffer> {
    return readFile(join(this.#folder, name));
  }
}
