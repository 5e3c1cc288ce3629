/** The certificates that a proxy shows: the operator's own files, and those that the platform manages. */
import type { SecureContext } from "node:tls";
import { CertificateDirectory } from "./certificate-directory.ts";

export interface CertificateFolders {
  /**
   * The operator's directory, with `<name>.crt` (or `.pem`, with the chain) and `<name>.key` for each hostname. A pair
   * named `_.example.org` serves all names directly below example.org. A pair named `default` serves every other name,
   * and clients that send no name.
   */
  folder: string;
  /** The platform's directory, with `<name>.pem` for each name: key, certificate and chain in one file. */
  managed?: string | undefined;
}

export class Certificates {
  readonly #own: CertificateDirectory;
  readonly #managed: CertificateDirectory | undefined;

  private constructor(own: CertificateDirectory, managed: CertificateDirectory | undefined) {
    this.#own = own;
    this.#managed = managed;
  }

  /**
   * Reads the directories. Rejects if the operator's cannot be read, unless it is missing and there may be managed
   * certificates. A broken certificate is reported and left out.
   */
  static async open({ folder, managed }: CertificateFolders, onFault: (error: unknown) => void): Promise<Certificates> {
    const own = new CertificateDirectory(folder, onFault, { layout: "pairs", mayBeMissing: managed !== undefined });
    const made =
      managed === undefined
        ? undefined
        : new CertificateDirectory(managed, onFault, { layout: "single", mayBeMissing: true });
    await Promise.all([own.load(), made?.load()]);
    return new Certificates(own, made);
  }

  /** Adopts what has changed. A certificate that is broken, or half written, leaves the old one in place. */
  async refresh(): Promise<void> {
    await Promise.all([this.#own.refresh(), this.#managed?.refresh()]);
  }

  /**
   * Returns what a client gets that asks for `name`: the operator's certificate of that name or of its wildcard, then the
   * managed ones in the same order, then the operator's default.
   */
  find(name: string): SecureContext | undefined {
    const host = name.toLowerCase();
    const wildcard = `_.${host.slice(host.indexOf(".") + 1)}`;
    const directories = [this.#own, this.#managed];
    for (const directory of directories) {
      const found = directory?.get(host) ?? directory?.get(wildcard);
      if (found !== undefined) return found.context;
    }
    return this.#own.get("default")?.context;
  }

  /** The default certificate, for clients that send no name; empty if there is none. */
  get fallback(): { cert?: Buffer; key?: Buffer } {
    const pair = this.#own.get("default");
    return pair === undefined ? {} : { cert: pair.cert, key: pair.key };
  }
}
