/**
 * The files of managed certificates, in a directory of the data directory that only the platform's user can read. Each
 * file has the key, the certificate and its chain: one rename replaces all of them, so that no reader finds a key without
 * its certificate. Proxies read the files by themselves (proxy/http/certificates.ts), while the platform is away, too.
 */
import { createHash, createPrivateKey, X509Certificate } from "node:crypto";
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { flush, replaceFile } from "@hibernaut/lib/durable";
import type { Issued } from "./contract.ts";
import type { Lifetime } from "./rules.ts";

/** What a stored certificate says about itself. */
export interface Stored extends Lifetime {
  issuer: string;
  /** The directory of the authority that issued it. */
  directory: string;
  /** From 0 to 1: constant for this certificate, and different for others. */
  spread: number;
}

const ENDING = ".pem";
/** The text before the first block, which readers of PEM skip. */
const DIRECTORY = /^Directory: (\S+)$/m;

export class CertificateFiles {
  readonly #folder: string;
  /** What is stored, by name. */
  #found = new Map<string, Stored>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Reads what is on the disk, and makes the directory if it is missing. Call it once, before anything else. */
  async load(onFault: (name: string, error: unknown) => void): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    this.#found = await this.readAll(onFault);
  }

  /** Returns what is stored, by name. A file that cannot be used counts as missing, and is told of. */
  async readAll(onFault: (name: string, error: unknown) => void): Promise<Map<string, Stored>> {
    const found = new Map<string, Stored>();
    for (const file of await readdir(this.#folder)) {
      const name = nameOf(file);
      if (name === undefined) continue;
      try {
        found.set(name, parseStored(await readFile(join(this.#folder, file), "utf8")));
      } catch (error) {
        onFault(name, error);
      }
    }
    return found;
  }

  get(name: string): Stored | undefined {
    return this.#found.get(name);
  }

  names(): string[] {
    return [...this.#found.keys()];
  }

  /** Stores a certificate in the place of the one before. Rejects if it does not fit its key. */
  async put(name: string, { chain, key }: Issued, directory: string): Promise<Stored> {
    const text = `Directory: ${directory}\n${key.trim()}\n${chain.trim()}\n`;
    const stored = parseStored(text);
    await replaceFile(this.#fileOf(name), text, { mode: 0o600 });
    this.#found.set(name, stored);
    return stored;
  }

  /** Returns a certificate without its chain, as PEM. */
  async certificateOf(name: string): Promise<string> {
    return blockOf(await readFile(this.#fileOf(name), "utf8"), "CERTIFICATE");
  }

  /** Deletes a certificate, if there is one. */
  async remove(name: string): Promise<void> {
    this.#found.delete(name);
    await rm(this.#fileOf(name), { force: true });
    await flush(this.#folder);
  }

  /** `*.example.com` is `_.example.com.pem`: a star in a filename invites accidents in shells. */
  #fileOf(name: string): string {
    return join(this.#folder, `${name.replace(/^\*\./, "_.")}${ENDING}`);
  }
}

/** Parses a stored file. Throws if it is not a key with its certificate. */
function parseStored(text: string): Stored {
  const certificate = new X509Certificate(blockOf(text, "CERTIFICATE"));
  const key = createPrivateKey(blockOf(text, "(?:[A-Z]+ )?PRIVATE KEY"));
  if (!certificate.checkPrivateKey(key)) throw new Error("The certificate does not belong to its key.");
  const [directory = ""] = DIRECTORY.exec(text)?.slice(1) ?? [];
  const organization = /^O=(.+)$/m.exec(certificate.issuer)?.[1];
  const common = /^CN=(.+)$/m.exec(certificate.issuer)?.[1];
  return {
    notBefore: Date.parse(certificate.validFrom),
    notAfter: Date.parse(certificate.validTo),
    issuer: [organization, common].filter(Boolean).join(", ") || "unknown",
    directory,
    spread: createHash("sha256").update(certificate.raw).digest().readUInt16BE(0) / 0xffff,
  };
}

/** The first block of a kind. Empty if there is none, which no parser accepts. */
function blockOf(text: string, kind: string): string {
  return new RegExp(`-----BEGIN (${kind})-----[^-]+-----END \\1-----`).exec(text)?.[0] ?? "";
}

function nameOf(file: string): string | undefined {
  return file.endsWith(ENDING) ? file.slice(0, -ENDING.length).replace(/^_\./, "*.") : undefined;
}
