/** What the CLI trusts and shows over TLS. */
import { readFileSync } from "node:fs";
import type { ClientCertificate } from "@hibernaut/client";
import type { NamedFile, TlsFiles } from "./config.ts";
import { CliError } from "./failure.ts";

const [CERT, KEY] = ["HIBERNAUT_API_CLIENT_CERT", "HIBERNAUT_API_CLIENT_KEY"];

/** Since Node 24.5 and 22.19. */
interface TlsWithDefaults {
  getCACertificates?(type: "default"): string[];
  setDefaultCACertificates?(certificates: readonly string[]): void;
}

/** Adds the authorities in a PEM file to those that are known. Throws a CliError if that cannot be done. */
export async function trustAuthorities(ca: NamedFile): Promise<void> {
  const pem = read(ca);
  if (!pem.includes("-----BEGIN CERTIFICATE-----")) throw notPem(ca, "certificate", "it has no certificate");
  const { default: tls } = (await import("node:tls")) as unknown as { default: TlsWithDefaults };
  if (tls.getCACertificates === undefined || tls.setDefaultCACertificates === undefined)
    throw new CliError(
      "failed_precondition",
      `${ca.from} needs Node 24.5, and this is ${process.version}. Set NODE_EXTRA_CA_CERTS to the file instead.`,
    );
  try {
    tls.setDefaultCACertificates([...tls.getCACertificates("default"), pem]);
  } catch (error) {
    throw notPem(ca, "certificate", (error as Error).message);
  }
}

/** Returns the certificate and its key; undefined without both. Throws a CliError if the two cannot be used together. */
export async function readClientCertificate({ cert, key }: TlsFiles): Promise<ClientCertificate | undefined> {
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
  const leaf = parsed(cert, "certificate", () => new X509Certificate(pair.cert));
  if (/^-----BEGIN ENCRYPTED|^Proc-Type: .*ENCRYPTED/m.test(pair.key))
    throw invalid(
      `${key.from} names ${key.file}, which has a passphrase. The CLI takes a key without one: make it with \`openssl pkey -in ${key.file}\`, in a file that only you can read.`,
    );
  const secret = parsed(key, "private key", () => createPrivateKey(pair.key));
  if (!leaf.checkPrivateKey(secret))
    throw invalid(
      `The key in ${key.file} does not belong to the certificate in ${cert.file}. Name the two that were made together.`,
    );
  if (Date.parse(leaf.validTo) < Date.now())
    throw invalid(
      `The client certificate in ${cert.file} expired on ${day(leaf.validTo)}. Get a new one from its authority.`,
    );
}

function parsed<T>(named: NamedFile, what: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw notPem(named, what, (error as Error).message);
  }
}

function notPem({ file, from }: NamedFile, what: string, why: string): CliError {
  return invalid(`${from} names ${file}, which is not a ${what} in PEM: ${why}.`);
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
