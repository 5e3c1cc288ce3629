/** Certificates that are read once a connection needs them, and looked at from then on. */
import { background } from "@hibernaut/lib/background";
import { type CertificateFolders, Certificates } from "./certificates.ts";
import { REFRESH_MS } from "./server.ts";

export class LateCertificates {
  readonly #folders: CertificateFolders;
  readonly #onFault: (error: unknown) => void;
  #open: Promise<Certificates> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(folders: CertificateFolders, onFault: (error: unknown) => void) {
    this.#folders = folders;
    this.#onFault = onFault;
  }

  /** Rejects if the operator's directory cannot be read; the next call tries again. */
  get(): Promise<Certificates> {
    this.#open ??= this.#read().catch((error: unknown) => {
      this.#open = undefined;
      this.#onFault(error);
      throw error;
    });
    return this.#open;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #read(): Promise<Certificates> {
    const certificates = await Certificates.open(this.#folders, this.#onFault);
    this.#timer = setInterval(
      () => background(certificates.refresh(), "reading the certificate again"),
      REFRESH_MS,
    ).unref();
    return certificates;
  }
}
