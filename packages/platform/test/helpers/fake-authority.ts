/** A certificate authority without a network: it signs what it is asked for, or fails as a test wants. */
import { generateKeyPairSync, type KeyObject, randomBytes, webcrypto } from "node:crypto";
import type { AuthorityInfo, CertificateAuthority, Issued, Order, Proof } from "@hibernaut/certs";
import { abortable } from "@hibernaut/lib/async";
import { BasicConstraintsExtension, SubjectAlternativeNameExtension, X509CertificateGenerator } from "@peculiar/x509";

const DAY_MS = 86_400_000;
const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;

export class FakeAuthority implements CertificateAuthority {
  readonly directory: string;
  readonly #now: () => number;
  /** What it signs with: one key for all, because making keys takes time. */
  readonly #key: KeyObject = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
  termsUrl: string | undefined = "https://authority.test/terms";
  lifetimeDays = 90;
  /** Thrown instead of a certificate, by any name. */
  fault: Error | undefined;
  /** Holds every order until it resolves. */
  hold: Promise<void> | undefined;
  /** The names that were ordered. */
  readonly ordered: string[] = [];
  /** The certificates that were revoked, as PEM. */
  readonly revoked: string[] = [];
  /** Orders in progress, and the most that there ever were. */
  open = 0;
  mostOpen = 0;
  #agreed = false;

  /** @param now milliseconds since 1970 */
  constructor(now: () => number = Date.now, directory = "https://authority.test/directory") {
    this.#now = now;
    this.directory = directory;
  }

  async describe(): Promise<AuthorityInfo> {
    if (this.fault !== undefined) throw this.fault;
    return { termsUrl: this.termsUrl, caaIdentities: ["authority.test"] };
  }

  async agreed(): Promise<boolean> {
    return this.#agreed;
  }

  async agree(): Promise<void> {
    this.#agreed = true;
  }

  async issue({ name, challenge, prove }: Order, signal: AbortSignal): Promise<Issued> {
    this.ordered.push(name);
    this.open += 1;
    this.mostOpen = Math.max(this.mostOpen, this.open);
    const proof: Proof =
      challenge === "http-01"
        ? { kind: challenge, hostname: name, token: `token-${name}`, value: "proof" }
        : challenge === "dns-01"
          ? { kind: challenge, record: `_acme-challenge.${name.slice(2)}`, value: "proof" }
          : { kind: challenge, hostname: name, certificate: "a certificate" };
    let end = async () => {};
    try {
      end = await prove(proof, signal);
      if (this.hold !== undefined) await abortable(this.hold, signal);
      if (this.fault !== undefined) throw this.fault;
      return await this.#sign(name);
    } finally {
      await end();
      this.open -= 1;
    }
  }

  async revoke(certificate: string): Promise<void> {
    if (this.fault !== undefined) throw this.fault;
    this.revoked.push(certificate);
  }

  close(): void {}

  async #sign(name: string): Promise<Issued> {
    const pkcs8 = this.#key.export({ type: "pkcs8", format: "der" });
    const privateKey = await webcrypto.subtle.importKey("pkcs8", pkcs8, ALGORITHM, true, ["sign"]);
    const { kty, crv, x, y } = await webcrypto.subtle.exportKey("jwk", privateKey);
    const jwk = { ...(kty && { kty }), ...(crv && { crv }), ...(x && { x }), ...(y && { y }) };
    const publicKey = await webcrypto.subtle.importKey("jwk", jwk, ALGORITHM, true, ["verify"]);
    const certificate = await X509CertificateGenerator.createSelfSigned({
      serialNumber: randomBytes(8).toString("hex"),
      name: "CN=Fake authority",
      notBefore: new Date(this.#now()),
      notAfter: new Date(this.#now() + this.lifetimeDays * DAY_MS),
      signingAlgorithm: ALGORITHM,
      keys: { privateKey, publicKey },
      extensions: [
        new BasicConstraintsExtension(false),
        new SubjectAlternativeNameExtension([{ type: "dns", value: name }]),
      ],
    });
    return { chain: certificate.toString("pem"), key: String(this.#key.export({ type: "pkcs8", format: "pem" })) };
  }
}
