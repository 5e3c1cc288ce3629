/** Certificates from a folder, one pair of files for each host name. */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { createSecureContext, type SecureContext } from "node:tls";

interface Pair {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly context: SecureContext;
}

/**
 * A folder with `<name>.crt` (or `.pem`, with the chain) and `<name>.key` for each host name. A pair named
 * `_.example.org` serves all names directly below example.org, `default` every other name and clients that name none.
 */
export class Certificates {
  readonly #folder: string;
  readonly #onFault: (error: unknown) => void;
  #pairs = new Map<string, Pair>();
  /** What the loaded pairs were read from: names, times and sizes. */
  #seen = new Map<string, string>();
  #looking: Promise<void> | undefined;

  private constructor(folder: string, onFault: (error: unknown) => void) {
    this.#folder = folder;
    this.#onFault = onFault;
  }

  /** Reads the folder. Rejects when it cannot be read; a pair that is broken is reported and left out. */
  static async open(folder: string, onFault: (error: unknown) => void): Promise<Certificates> {
    const certificates = new Certificates(folder, onFault);
    await certificates.#load();
    return certificates;
  }

  /**
   * Takes over what changed. A pair that is broken, or half written, leaves the old one in its place. While a look
   * is under way another waits for it and sees the same: two at once would take each other's pairs for their own.
   */
  refresh(): Promise<void> {
    this.#looking ??= this.#load()
      .catch((error: unknown) => this.#onFault(error))
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  /** What a client gets that asks for `name`: its own pair, that of the names beside it, or the default. */
  find(name: string): SecureContext | undefined {
    const host = name.toLowerCase();
    const parent = host.slice(host.indexOf(".") + 1);
    const pair = this.#pairs.get(host) ?? this.#pairs.get(`_.${parent}`) ?? this.#pairs.get("default");
    return pair?.context;
  }

  /** The default pair, for clients that name no host; empty when there is none. */
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
        // Seen and not taken over means that it was broken; it is tried again when a file changes.
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
