/** Keys and X.509 certificates that the platform makes: authorities of its own, and what they sign. */
import { createHash, createPublicKey, generateKeyPairSync, randomBytes, webcrypto, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import type * as library from "@peculiar/x509";

/** The library that makes certificates. */
type Library = typeof library;

const DAY_MS = 86_400_000;
/** Certificates are valid from somewhat before now, because clocks of hosts differ. */
export const CLOCK_SKEW_MS = 5 * 60_000;
/** A host has a third of its certificate's time to renew it. */
const RENEW_AFTER = 2 / 3;
const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;

/** A certificate and its key, PEM. */
export interface Pair {
  certificate: string;
  key: string;
}

/** Makes a key, PEM: P-256. */
export function makeKey(): { key: string; publicKey: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return {
    key: String(privateKey.export({ type: "pkcs8", format: "pem" })),
    publicKey: String(publicKey.export({ type: "spki", format: "pem" })),
  };
}

/** The public key of a private one, PEM. */
export function publicKeyOf(key: string): string {
  return String(createPublicKey(key).export({ type: "spki", format: "pem" }));
}

/** SHA-256 of a public key, hex: of PEM, or of a certificate. It stays the same when a certificate is renewed. */
export function keyFingerprint(from: string | X509Certificate): string {
  const key = typeof from === "string" ? createPublicKey(from) : from.publicKey;
  return createHash("sha256")
    .update(key.export({ type: "spki", format: "der" }))
    .digest("hex");
}

/** Makes an authority that signs certificates for hostnames and addresses, valid for `days` from now. */
export async function makeAuthority(name: string, days: number): Promise<Pair> {
  const x509 = await loadLibrary();
  const { key, publicKey } = makeKey();
  const own = await importPublic(publicKey);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    ...common(name, Date.now(), days),
    keys: { privateKey: await importPrivate(key), publicKey: own },
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
      await x509.SubjectKeyIdentifierExtension.create(own),
    ],
  });
  return {
    certificate: `${certificate.toString("pem")}
`,
    key,
  };
}

interface Signed {
  name: string;
  /** Hostnames and IP addresses at which the certificate counts. */
  names: readonly string[];
  /** PEM. */
  publicKey: string;
  days: number;
}

/** Signs a certificate for both sides of a connection. Resolves with PEM. */
export async function sign(
  authority: Pair,
  { name, names, publicKey, days }: Signed,
  now = Date.now(),
): Promise<string> {
  const x509 = await loadLibrary();
  const alternatives = names.map((each) => ({
    type: isIP(each) === 0 ? ("dns" as const) : ("ip" as const),
    value: each,
  }));
  const issuer = new x509.X509Certificate(authority.certificate);
  const certificate = await x509.X509CertificateGenerator.create({
    ...common(name, now, days),
    subject: `CN=${name}`,
    issuer: issuer.subject,
    signingKey: await importPrivate(authority.key),
    publicKey: await importPublic(publicKey),
    extensions: [
      new x509.BasicConstraintsExtension(false),
      ...(alternatives.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(alternatives)]),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth]),
      // Python's clients insist on it.
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
    ],
  });
  return `${certificate.toString("pem")}\n`;
}

/** When a certificate should be renewed, in milliseconds since 1970. */
export function renewalOf(certificate: string): number {
  const { from, to } = validity(new X509Certificate(certificate));
  return from + (to - from) * RENEW_AFTER;
}

/** From when to when a certificate is valid, in milliseconds since 1970. */
export function validity(certificate: X509Certificate): { from: number; to: number } {
  return { from: certificate.validFromDate.getTime(), to: certificate.validToDate.getTime() };
}

/** Loaded when it is needed. In the bundle, the exports of a CommonJS package are below `default` only. */
async function loadLibrary(): Promise<Library> {
  const loaded = (await import("@peculiar/x509")) as Library & { default?: Library };
  return loaded.default ?? loaded;
}

function common(name: string, now: number, days: number) {
  return {
    serialNumber: randomBytes(16).toString("hex"),
    name: `CN=${name}`,
    notBefore: new Date(now - CLOCK_SKEW_MS),
    notAfter: new Date(now + days * DAY_MS),
    signingAlgorithm: ALGORITHM,
  };
}

function importPrivate(pem: string) {
  return webcrypto.subtle.importKey("pkcs8", derOf(pem), ALGORITHM, false, ["sign"]);
}

function importPublic(pem: string) {
  return webcrypto.subtle.importKey("spki", derOf(pem), ALGORITHM, true, ["verify"]);
}

function derOf(pem: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(pem.replaceAll(/-----[A-Z ]+-----|\s/g, ""), "base64"));
}
