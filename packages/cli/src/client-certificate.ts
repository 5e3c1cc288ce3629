/** Reads the certificate that the CLI shows to a platform that asks clients for one. */
import { readFileSync } from "node:fs";
import type { ClientCertificate } from "@hibernaut/client";
import type { NamedFile } from "./config.ts";
import { CliError } from "./failure.ts";

const [CERT, KEY] = ["HIBERNAUT_API_CLIENT_CERT", "HIBERNAUT_API_CLIENT_KEY"];

/** The two files, as they are configured. */
interface CertificateFiles {
  cert: NamedFile | undefined;
  key: NamedFile | undefined;
}

/** Returns the certificate and its key; undefined without both. Throws a CliError if the two cannot be used together. */
export async function readClientCertificate({ cert, key }: CertificateFiles): Promise<ClientCertificate | undefined> {
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined)
    throw invalid(`${key?.from} is set, and ${CERT} is not. A certificate and its key are needed.`);
  if (key === undefined) throw invalid(`${cert.from} is set, and ${KEY} is not. A certificate and its key are needed.`);
  const pair = { cert: read(cert), key: read(key) };
  await check(pair, cert, key);
  return pair;
}

/** What is wrong here is said here: a platform that does not like a certificate only closes the connection. */
async function check(pair: ClientCertificate, cert: NamedFile, key: NamedFile): Promise<void> {
  const { createPrivateKey, X509Certificate } = await import("node:crypto");
  const leaf = parsed(
    () => new X509Certificate(pair.cert),
    `${cert.from} names ${cert.file}, which is not a certificate`,
  );
  if (/^-----BEGIN ENCRYPTED|^Proc-Type: .*ENCRYPTED/m.test(pair.key))
    throw invalid(
      `${key.from} names ${key.file}, which has a passphrase. The CLI takes a key without one: make it with \`openssl pkey -in ${key.file}\`, in a file that only you can read.`,
    );
  const secret = parsed(() => createPrivateKey(pair.key), `${key.from} names ${key.file}, which is not a private key`);
  if (!leaf.checkPrivateKey(secret))
    throw invalid(
      `The key in ${key.file} does not belong to the certificate in ${cert.file}. Name the two that were made together.`,
    );
  if (Date.parse(leaf.validTo) < Date.now())
    throw invalid(
      `The client certificate in ${cert.file} expired on ${day(leaf.validTo)}. Get a new one from its authority.`,
    );
}

function parsed<T>(parse: () => T, what: string): T {
  try {
    return parse();
  } catch (error) {
    throw invalid(`${what} in PEM: ${(error as Error).message}.`);
  }
}

function read({ file, from }: NamedFile): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const { code = "unknown fault" } = error as NodeJS.ErrnoException;
    throw invalid(`${from} names ${file}, which cannot be read (${code}).`);
  }
}

function day(date: string): string {
  return new Date(date).toISOString().slice(0, "2026-01-01".length);
}

function invalid(message: string): CliError {
  return new CliError("invalid_argument", message);
}
