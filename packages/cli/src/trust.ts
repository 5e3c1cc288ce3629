/** Lets the CLI believe a platform whose certificate a private authority signed. */
import { readFileSync } from "node:fs";
import type { NamedFile } from "./config.ts";
import { CliError } from "./failure.ts";

/** Since Node 24.5 and 22.19. */
interface TlsWithDefaults {
  getCACertificates?(type: "default"): string[];
  setDefaultCACertificates?(certificates: readonly string[]): void;
}

/** Adds the authorities in a PEM file to those that are known. Throws a CliError if that cannot be done. */
export async function trustAuthorities(ca: NamedFile): Promise<void> {
  const pem = read(ca);
  if (!pem.includes("-----BEGIN CERTIFICATE-----")) throw noCertificate(ca, "it has no certificate");
  const { default: tls } = (await import("node:tls")) as unknown as { default: TlsWithDefaults };
  if (tls.getCACertificates === undefined || tls.setDefaultCACertificates === undefined)
    throw new CliError(
      "failed_precondition",
      `${ca.from} needs Node 24.5, and this is ${process.version}. Set NODE_EXTRA_CA_CERTS to the file instead.`,
    );
  try {
    tls.setDefaultCACertificates([...tls.getCACertificates("default"), pem]);
  } catch (error) {
    throw noCertificate(ca, (error as Error).message);
  }
}

function noCertificate({ file, from }: NamedFile, why: string): CliError {
  return new CliError("invalid_argument", `${from} names ${file}, which is not a certificate in PEM: ${why}.`);
}

function read({ file, from }: NamedFile): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const { code = "unknown fault" } = error as NodeJS.ErrnoException;
    throw new CliError("invalid_argument", `${from} names ${file}, which cannot be read (${code}).`);
  }
}
