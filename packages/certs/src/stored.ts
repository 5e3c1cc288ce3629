/** The certificates that are stored, in memory and on the disk. */
import type { Issued } from "./contract.ts";
import type { CertificateFiles, Stored } from "./files.ts";

export class StoredCertificates {
  readonly #files: CertificateFiles;
  #found = new Map<string, Stored>();

  constructor(files: CertificateFiles) {
    this.#files = files;
  }

  /** Reads what is on the disk. Call it once, before anything else. */
  async load(onFault: (name: string, error: unknown) => void): Promise<void> {
    await this.#files.open();
    this.#found = await this.#files.readAll(onFault);
  }

  get(name: string): Stored | undefined {
    return this.#found.get(name);
  }

  names(): string[] {
    return [...this.#found.keys()];
  }

  /** Stores a certificate in the place of the one before. */
  async put(name: string, issued: Issued, directory: string): Promise<Stored> {
    const stored = await this.#files.write(name, issued, directory);
    this.#found.set(name, stored);
    return stored;
  }

  /** Returns a certificate without its chain, as PEM. */
  certificateOf(name: string): Promise<string> {
    return this.#files.certificateOf(name);
  }

  async remove(name: string): Promise<void> {
    this.#found.delete(name);
    await this.#files.remove(name);
  }
}
