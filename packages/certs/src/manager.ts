/** Gets certificates for apps and renews them: the implementation of {@link CertificateService}. */
import { isHibernautError } from "@hibernaut/domain/errors";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import type { CertificateRecord } from "@hibernaut/store";
import type { CertificateService, CertificateView, Finding } from "./contract.ts";
import { Orders, type OrdersOptions } from "./orders.ts";
import {
  authorityUnreachable,
  changedMeanwhile,
  hookMissing,
  MAX_CERTIFICATES,
  nothingToRevoke,
  notRevoked,
  takenByOther,
  termsRefusal,
  tooMany,
  unknownCertificate,
} from "./refusals.ts";
import { challengeFor, checkName, covers, orderTime, renewalTime, type Situation, statusOf } from "./rules.ts";

export interface ManagerOptions extends OrdersOptions {
  /** An app's hostnames, and its names under the proxy's suffixes. Throws `not_found` when there is no such app. */
  namesOf(app: string): string[];
  /** Throws `failed_precondition` if the app may not have one more certificate. By default, it may. */
  requireRoom?(app: string): void;
  /** Whether there is a DNS hook, which wildcards need. */
  hasDnsHook: boolean;
  /** Looks what a name would need. */
  examine(name: string, signal: AbortSignal): Promise<Finding[]>;
}

/** How often to look what is due, in milliseconds. Nothing is due to the minute, and pauses are longer. */
const LOOK_MS = 60_000;

export class CertificateManager implements CertificateService {
  readonly #options: ManagerOptions;
  readonly #orders: Orders;
  /** Names that the store had since the platform started. */
  readonly #seen = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ManagerOptions) {
    this.#options = options;
    this.#orders = new Orders(options);
  }

  get orders(): CertificateService["orders"] {
    return this.#orders.ended;
  }

  /** Orders what is due, now and from now on. */
  start(): void {
    const look = () => background(this.look(), "looking for certificates that are due");
    look();
    this.#timer = setInterval(look, LOOK_MS).unref();
  }

  /** Orders what is due now. Resolves when these orders have ended, and never rejects. */
  async look(): Promise<void> {
    try {
      await this.tidy();
      const now = this.#now();
      const due = this.#options.store.list().filter((record) => orderTime(this.#situation(record)) <= now);
      await Promise.all(due.map(({ name }) => this.#orders.make(name)));
    } catch (error) {
      this.#options.log.warn({ reason: messageOf(error) }, "certificates could not be looked after");
    }
  }

  /**
   * Removes certificates of deleted apps, and those that have expired and that nobody needs. One whose hostname is gone
   * stays until then: the hostname may come back, and an order is not free.
   */
  async tidy(): Promise<void> {
    const { store, stored } = this.#options;
    const records = store.list();
    for (const record of records) {
      this.#seen.add(record.name);
      const { used, certificate, now } = this.#situation(record);
      if (!used && (certificate === undefined || certificate.notAfter <= now))
        await this.#forget(record.name, "it has expired, and its app no longer has the hostname");
    }
    const known = new Set(records.map(({ name }) => name));
    for (const name of stored.names()) {
      const expired = (stored.get(name)?.notAfter ?? 0) <= this.#now();
      if (!known.has(name) && (this.#seen.has(name) || expired)) await this.#forget(name, "its app was deleted");
    }
  }

  list(app: string): CertificateView[] {
    this.#options.namesOf(app);
    return this.all().filter((view) => view.app === app);
  }

  all(): CertificateView[] {
    return this.#options.store.list().map((record) => this.#view(record));
  }

  get(app: string, hostname: string): CertificateView {
    return this.#view(this.#require(app, hostname));
  }

  async add(
    app: string,
    hostname: string,
    { agreeToTerms = false, signal }: { agreeToTerms?: boolean; signal: AbortSignal },
  ): Promise<CertificateView> {
    const { namesOf, hasDnsHook, challenge } = this.#options;
    const name = checkName(hostname, app, namesOf(app));
    if (challengeFor(name, challenge) === "dns-01" && !hasDnsHook) throw hookMissing(name);
    await this.#requireTerms(name, app, agreeToTerms, signal);
    const record = this.#put(name, app);
    if (orderTime(this.#situation(record)) <= this.#now())
      this.#orders.make(name).catch((error: unknown) => {
        this.#options.log.warn({ hostname: name, reason: messageOf(error) }, "an order could not be noted");
      });
    return this.#view(record);
  }

  async check(app: string, hostname: string, signal: AbortSignal): Promise<Finding[]> {
    const { namesOf, examine } = this.#options;
    return examine(checkName(hostname, app, namesOf(app)), signal);
  }

  async remove(app: string, hostname: string, revoke?: { signal: AbortSignal }): Promise<void> {
    const { name } = this.#require(app, hostname);
    if (revoke !== undefined) await this.#revoke(name, revoke.signal);
    await this.#forget(name, revoke === undefined ? "someone removed it" : "someone revoked it");
  }

  /** A certificate whose revocation failed stays: without its file, nobody could try again. */
  async #revoke(name: string, signal: AbortSignal): Promise<void> {
    const { stored, authority } = this.#options;
    const issuedBy = stored.get(name)?.directory;
    if (issuedBy !== authority.directory) throw nothingToRevoke(name, authority.directory, issuedBy);
    try {
      await authority.revoke(await stored.certificateOf(name), signal);
    } catch (error) {
      signal.throwIfAborted();
      throw notRevoked(name, error);
    }
  }

  /** Gives orders up that are in progress. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#orders.close();
  }

  /** Notes that an app wants a certificate. Ends the pause after a failure, unless the authority asked for it. */
  #put(name: string, app: string): CertificateRecord {
    const { store, clock } = this.#options;
    this.#seen.add(name);
    const known = store.get(name);
    if (known === undefined) {
      const count = store.list().length;
      if (count >= MAX_CERTIFICATES) throw tooMany(count);
      this.#options.requireRoom?.(app);
      const record = { name, app, addedAt: clock().toISOString(), failure: null };
      if (!store.insert(record)) throw changedMeanwhile(name);
      return record;
    }
    // The hostname may have moved to another app, and its certificate moves with it.
    if (known.app !== app && this.#isUsed(known)) throw takenByOther(name, known.app);
    if (known.app !== app) this.#options.requireRoom?.(app);
    const failure = known.failure?.held === true ? known.failure : null;
    const record = { ...known, app, failure };
    store.update(record);
    return record;
  }

  async #forget(name: string, why: string): Promise<void> {
    const { store, stored, log } = this.#options;
    store.remove(name);
    this.#seen.delete(name);
    await stored.remove(name);
    log.info({ hostname: name, why }, "a certificate was removed");
  }

  /** Rejects unless the terms were agreed to, now or before. */
  async #requireTerms(name: string, app: string, agree: boolean, signal: AbortSignal): Promise<void> {
    const { authority } = this.#options;
    if (await authority.agreed()) return;
    const { termsUrl } = await authority.describe(signal).catch((error: unknown) => {
      signal.throwIfAborted();
      throw authorityUnreachable(error, authority.directory);
    });
    if (!agree && termsUrl !== undefined) throw termsRefusal(name, app, termsUrl);
    await authority.agree(termsUrl);
  }

  #require(app: string, hostname: string): CertificateRecord {
    this.#options.namesOf(app);
    const record = this.#options.store.get(hostname.toLowerCase().replace(/\.$/, ""));
    if (record === undefined || record.app !== app) throw unknownCertificate(hostname, app);
    return record;
  }

  /** Whether its app has a hostname that the certificate covers. */
  #isUsed({ name, app }: CertificateRecord): boolean {
    try {
      return this.#options.namesOf(app).some((hostname) => covers(name, hostname));
    } catch (error) {
      if (isHibernautError(error, "not_found")) return false;
      throw error;
    }
  }

  #situation(record: CertificateRecord): Situation {
    const { stored: all, authority } = this.#options;
    const stored = all.get(record.name);
    const certificate = stored && {
      ...stored,
      renewAt: renewalTime(stored, stored.spread),
      current: stored.directory === authority.directory,
    };
    return { now: this.#now(), certificate, failure: record.failure, used: this.#isUsed(record) };
  }

  #view(record: CertificateRecord): CertificateView {
    const situation = this.#situation(record);
    const { certificate } = situation;
    const time = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString());
    return {
      app: record.app,
      hostname: record.name,
      status: statusOf(situation),
      challenge: challengeFor(record.name, this.#options.challenge),
      issuer: this.#options.stored.get(record.name)?.issuer ?? null,
      notBefore: time(certificate?.notBefore),
      notAfter: time(certificate?.notAfter),
      renewAt: time(certificate?.renewAt),
      failure: record.failure,
    };
  }

  #now(): number {
    return this.#options.clock().getTime();
  }
}
