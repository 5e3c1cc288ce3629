/**
 * Certificates that the platform gets by itself: what a certificate authority does for the platform, and what the
 * platform does for its users.
 */
import { join } from "node:path";
import type { OrderFailure } from "@hibernaut/domain/certificate";

/** How the platform proves to an authority that a name leads to it. */
export type ChallengeKind = HostChallenge | "dns-01";

/** How it proves that a hostname leads to this host: at port 80, or at port 443. */
export type HostChallenge = "http-01" | "tls-alpn-01";

/** What an authority wants to find before it issues a certificate. */
export type Proof =
  /** `value` at `http://<hostname>/.well-known/acme-challenge/<token>`. */
  | { kind: "http-01"; hostname: string; token: string; value: string }
  /** This certificate, in PEM with its key, for TLS clients that offer the protocol `acme-tls/1` alone. */
  | { kind: "tls-alpn-01"; hostname: string; certificate: string }
  /** `value` in a TXT record of the name `record`. */
  | { kind: "dns-01"; record: string; value: string };

/** An order for one name. */
export interface Order {
  /** A hostname, or `*.` and a hostname. */
  name: string;
  challenge: ChallengeKind;
  /** Makes a proof visible. Resolves once it is, with a function that removes it again and never rejects. */
  prove(proof: Proof, signal: AbortSignal): Promise<() => Promise<void>>;
}

/** A certificate and its private key, in PEM. */
export interface Issued {
  /** The certificate, and the chain up to the authority's root without the root. */
  chain: string;
  key: string;
}

/** What an authority says about itself. */
export interface AuthorityInfo {
  /** Its terms of service, if it has any. */
  termsUrl: string | undefined;
  /** The names by which CAA records in DNS allow it. Empty if it does not say. */
  caaIdentities: readonly string[];
}

/** A certificate authority. All methods reject with an {@link AuthorityFault}, or with the signal's reason. */
export interface CertificateAuthority {
  /** Its address, which tells certificates of different authorities apart. */
  readonly directory: string;
  describe(signal: AbortSignal): Promise<AuthorityInfo>;
  /** Whether the terms of service were agreed to. */
  agreed(): Promise<boolean>;
  /** Notes, for good, that the operator agrees to these terms. */
  agree(termsUrl: string | undefined): Promise<void>;
  /** Gets a certificate with a new key. The account is made with the first order. */
  issue(order: Order, signal: AbortSignal): Promise<Issued>;
  /** Declares a certificate of this authority invalid before its end. `certificate` is PEM. Does nothing if it already is. */
  revoke(certificate: string, signal: AbortSignal): Promise<void>;
  /** Ends the connections to the authority. */
  close(): void;
}

/** Why an authority issued nothing. */
export class AuthorityFault extends Error {
  override name = "AuthorityFault";
  /** `unreachable`: no answer. `limited`: too many requests, or it is busy. `refused`: anything else. */
  readonly kind: "unreachable" | "limited" | "refused";
  /** How long the authority wants to be left alone, in milliseconds, if it says so. */
  readonly retryAfterMs: number | undefined;
  /** What the authority calls it, if it says so: a type of RFC 8555 6.7. */
  readonly problem: string | undefined;

  constructor(
    kind: AuthorityFault["kind"],
    message: string,
    options: ErrorOptions & { retryAfterMs?: number | undefined; problem?: string | undefined } = {},
  ) {
    super(message, options);
    this.kind = kind;
    this.retryAfterMs = options.retryAfterMs;
    this.problem = options.problem;
  }
}

/** The answers to challenges, for proxies. */
export interface Challenges {
  /** Those to HTTP-01 challenges, by `<hostname>/<token>`. */
  all(): Record<string, string>;
  /** Those to TLS-ALPN-01 challenges: certificates with their keys in PEM, by hostname. */
  certificates(): Record<string, string>;
  /** Calls `listener` after each change, which resolves once all proxies know it. Returns a function that ends that. */
  subscribe(listener: () => Promise<void>): () => void;
}

/**
 * `ordering`: there is none yet. `failed`: there is none, and the last attempt failed. `overdue`: there is a valid one, but
 * its renewal failed. `unused`: its app no longer has the hostname, so it is not renewed.
 */
export const CERTIFICATE_STATUSES = ["ordering", "valid", "overdue", "failed", "expired", "unused"] as const;

export type CertificateStatus = (typeof CERTIFICATE_STATUSES)[number];

/** A managed certificate, as users see it. It has everything but the private key. */
export interface CertificateView {
  app: string;
  /** A hostname, or `*.` and a hostname. */
  hostname: string;
  status: CertificateStatus;
  challenge: ChallengeKind;
  /** Who issued it; null while there is none. */
  issuer: string | null;
  /** RFC 3339. */
  notBefore: string | null;
  notAfter: string | null;
  /** When its renewal is due. */
  renewAt: string | null;
  failure: OrderFailure | null;
}

/** One thing that a certificate needs, and whether it is there. */
export interface Finding {
  what: "authority" | "dns" | "caa" | "port_80" | "port_443" | "dns_hook" | "tls";
  /** `unknown`: the platform cannot tell. */
  status: "ok" | "missing" | "unknown";
  /** A sentence for people. */
  found: string;
  /** DNS records to add, each as a line of a zone file. */
  records: readonly string[];
}

/** Gets, renews and removes certificates of apps. */
export interface CertificateService {
  /** The certificates of an app, by name. Throws `not_found` when there is no such app. */
  list(app: string): CertificateView[];
  /** Throws `not_found`. */
  get(app: string, hostname: string): CertificateView;
  /**
   * Orders a certificate, now and whenever it needs to be renewed. Adding one again repeats a failed attempt at once.
   * Rejects with `failed_precondition` when the app does not have the name, or the terms of the authority were not agreed
   * to, and with `unavailable` when the authority cannot be reached.
   */
  add(
    app: string,
    hostname: string,
    options: { agreeToTerms?: boolean; signal: AbortSignal },
  ): Promise<CertificateView>;
  /** Looks what a certificate for the name would need, whether it was added or not. */
  check(app: string, hostname: string, signal: AbortSignal): Promise<Finding[]>;
  /**
   * Removes a certificate with its key, and does not renew it. Rejects with `not_found`. With `revoke`, the authority
   * declares it invalid first; if it does not, the certificate stays, and this rejects with `failed_precondition` or
   * `unavailable`.
   */
  remove(app: string, hostname: string, revoke?: { signal: AbortSignal }): Promise<void>;
  /** The certificates of all apps, for metrics. */
  all(): CertificateView[];
  /** How many orders ended, by how, since the platform started. */
  readonly orders: Readonly<Record<"issued" | "failed", number>>;
}

/**
 * Returns the directory of accounts and managed certificates. Only the platform's user can read it. Proxies read the
 * certificates, one file for each: `<name>.pem`, with key, certificate and chain.
 */
export function certificatesFolder(dataDir: string): string {
  return join(dataDir, "certificates");
}
