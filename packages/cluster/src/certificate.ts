/** This host's certificate: checked against the clock at the start, and renewed in time by the host itself. */
import { X509Certificate } from "node:crypto";
import { HibernautError } from "@hibernaut/domain/errors";
import { keyFingerprint, type Pair, renewalOf, validity } from "@hibernaut/lib/certificates";
import { type Home, replaceCertificate } from "./home.ts";
import { signHost } from "./identity.ts";

/** How often the certificate is looked at. Months are left when it is due. */
const LOOK_MS = 3_600_000;

interface CertificateOptions {
  dataDir: string;
  home: Home;
  /** Is told of a renewed one. */
  onRenewed(identity: Pair): void;
  onFault(error: unknown): void;
  /** Milliseconds since 1970. */
  now?: () => number;
}

export class HostCertificate {
  readonly #options: CertificateOptions;
  readonly #now: () => number;
  #identity: Pair;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: CertificateOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#identity = options.home.identity;
  }

  get identity(): Pair {
    return this.#identity;
  }

  /**
   * Renews the certificate if it is due, and from now on whenever it is. Throws `failed_precondition` when this host's
   * clock is so wrong that no host would accept a certificate.
   */
  async start(): Promise<void> {
    requireClock("authority", this.#options.home.authority.certificate, this.#now());
    // Signed by this host, or by another one whose clock may have been right.
    const { from } = validity(new X509Certificate(this.#identity.certificate));
    if (this.#now() < from) throw clockBehind("this host's certificate", from, this.#now());
    await this.renewIfDue();
    this.#timer = setInterval(() => void this.renewIfDue().catch(this.#options.onFault), LOOK_MS).unref();
  }

  async renewIfDue(): Promise<void> {
    const now = this.#now();
    if (now < renewalOf(this.#identity.certificate)) return;
    const { dataDir, home, onRenewed } = this.#options;
    const { publicKey } = new X509Certificate(this.#identity.certificate);
    const pem = String(publicKey.export({ type: "spki", format: "pem" }));
    const certificate = await signHost(home.authority, home.host, pem, now);
    await replaceCertificate(dataDir, certificate);
    this.#identity = { certificate, key: this.#identity.key };
    onRenewed(this.#identity);
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

/** Throws `failed_precondition` unless a certificate is valid by this host's clock. `whose` begins the sentence. */
export function requireClock(whose: string, pem: string, now = Date.now()): void {
  const { from, to } = validity(new X509Certificate(pem));
  if (now < from) throw clockBehind(`the certificate of the ${whose}`, from, now);
  if (now <= to) return;
  throw new HibernautError(
    "failed_precondition",
    `The certificate of the ${whose} expired at ${iso(to)}, and this host's clock says ${iso(now)}. Set this host's clock if it is wrong. Otherwise start the platform on that host, which renews its certificate.`,
    { expired_at: iso(to), clock: iso(now) },
  );
}

/** Throws `failed_precondition` unless a certificate and a key belong together. */
export function requirePair({ certificate, key }: Pair, where: string): void {
  if (keyFingerprint(new X509Certificate(certificate)) === keyFingerprint(key)) return;
  throw new HibernautError(
    "failed_precondition",
    `The certificate and the key in ${where} do not belong together. Put both back from a backup.`,
  );
}

function clockBehind(what: string, from: number, now: number): HibernautError {
  return new HibernautError(
    "failed_precondition",
    `This host's clock says ${iso(now)}, but ${what} is valid only from ${iso(from)} on. Set this host's clock, and check the clock of the host that signed it.`,
    { valid_from: iso(from), clock: iso(now) },
  );
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
