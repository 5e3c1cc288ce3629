/** A certificate authority that speaks ACME (RFC 8555), by way of the library acme-client. */
import { readFileSync } from "node:fs";
import { Agent } from "node:https";
import { setTimeout as delay } from "node:timers/promises";
import { HibernautError } from "@hibernaut/domain/errors";
import { abortable, within } from "@hibernaut/lib/async";
import { messageOf } from "@hibernaut/lib/text";
import type * as acme from "acme-client";
import type { AccountFile } from "./account.ts";
import { faultOf } from "./acme-faults.ts";
import { challengeCertificate, type Library, loadLibrary } from "./acme-library.ts";
import {
  AuthorityFault,
  type AuthorityInfo,
  type CertificateAuthority,
  type ChallengeKind,
  type Issued,
  type Order,
  type Proof,
} from "./contract.ts";
import { challengeRecord } from "./rules.ts";

/** The parts of an authority's directory (RFC 8555 7.1.1) that are looked at here. */
interface Directory {
  newOrder?: unknown;
  meta?: { termsOfService?: unknown; caaIdentities?: unknown };
}

interface AcmeOptions {
  /** The URL of the authority's directory. */
  directory: string;
  /** Where the authority may write to about the account, if anywhere. */
  email: string | undefined;
  /** A file with the root certificate of a private authority, in PEM. */
  caFile: string | undefined;
  account: AccountFile;
}

/** How long one request may take, in milliseconds. Authorities answer within a second; a busy one may take some more. */
const REQUEST_MS = 30_000;
/** The first and the longest pause between two looks at an order, in milliseconds. Most are ready within seconds. */
const FIRST_LOOK_MS = 250;
const LONGEST_LOOK_MS = 5_000;
/** How long an authority may take to verify proofs, and again to sign. Let's Encrypt gives up on its own after less. */
const READY_MS = 120_000;
const ALREADY_REVOKED = "urn:ietf:params:acme:error:alreadyRevoked";
/** The authority does not know the account: a test server forgets them, and operators close them. */
const NO_ACCOUNT = "urn:ietf:params:acme:error:accountDoesNotExist";

export class AcmeAuthority implements CertificateAuthority {
  readonly directory: string;
  readonly #options: AcmeOptions;
  readonly #agent: Agent;
  #library: Promise<Library> | undefined;
  #client: Promise<acme.Client> | undefined;

  /** Throws `invalid_argument` if the file with the root certificate cannot be read. */
  constructor(options: AcmeOptions) {
    this.#options = options;
    this.directory = options.directory;
    this.#agent = new Agent({ keepAlive: true, ...(options.caFile !== undefined && { ca: readRoot(options.caFile) }) });
  }

  async describe(signal: AbortSignal): Promise<AuthorityInfo> {
    const { data } = await this.#ask((await this.#load()).axios.get<Directory | string>(this.directory), signal);
    if (typeof data === "string" || data.newOrder === undefined)
      throw new AuthorityFault("refused", `${this.directory} is not the directory of an ACME server.`);
    const { termsOfService: terms, caaIdentities: caa } = data.meta ?? {};
    return {
      termsUrl: typeof terms === "string" ? terms : undefined,
      caaIdentities: Array.isArray(caa) ? caa.filter((name) => typeof name === "string") : [],
    };
  }

  async agreed(): Promise<boolean> {
    return (await this.#options.account.read()) !== undefined;
  }

  async agree(termsUrl: string | undefined): Promise<void> {
    await this.#options.account.make(termsUrl);
  }

  async issue(order: Order, signal: AbortSignal): Promise<Issued> {
    try {
      return await this.#order(await this.#open(signal), order, signal);
    } catch (error) {
      // The next order makes a new one with the same key.
      if (error instanceof AuthorityFault && error.problem === NO_ACCOUNT) await this.#forgetAccount();
      throw error;
    }
  }

  async revoke(certificate: string, signal: AbortSignal): Promise<void> {
    const client = await this.#open(signal);
    try {
      await this.#ask(client.revokeCertificate(certificate), signal);
    } catch (error) {
      if (!(error instanceof AuthorityFault && error.problem === ALREADY_REVOKED)) throw error;
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  async #order(client: acme.Client, order: Order, signal: AbortSignal): Promise<Issued> {
    const ends: (() => Promise<void>)[] = [];
    try {
      const identifiers = [{ type: "dns", value: order.name }];
      const created = await this.#ask(client.createOrder({ identifiers }), signal);
      for (const authorization of await this.#ask(client.getAuthorizations(created), signal))
        if (authorization.status !== "valid") ends.push(await this.#prove(client, order, authorization, signal));
      await this.#proven(client, created, signal);
      return await this.#sign(client, created, order.name, signal);
    } finally {
      await Promise.all(ends.map((end) => end()));
    }
  }

  /** Forgets the account's address at the authority, but not its key. */
  async #forgetAccount(): Promise<void> {
    this.#client = undefined;
    await this.#options.account.setUrl(null);
  }

  /** Makes the proof visible, and asks the authority to look. */
  async #prove(
    client: acme.Client,
    { name, challenge: kind, prove }: Order,
    { challenges }: acme.Authorization,
    signal: AbortSignal,
  ): Promise<() => Promise<void>> {
    const challenge = challenges.find(({ type }) => type === kind);
    if (challenge === undefined)
      throw new AuthorityFault("refused", `The authority does not accept ${kind} as a proof for ${name}.`);
    const value = await client.getChallengeKeyAuthorization(challenge);
    const end = await prove(await proofOf(kind, name, { token: challenge.token, value }), signal);
    try {
      await this.#ask(client.completeChallenge(challenge), signal);
      return end;
    } catch (error) {
      await end();
      throw error;
    }
  }

  /** Waits until the authority has verified all proofs. */
  async #proven(client: acme.Client, order: acme.Order, signal: AbortSignal): Promise<void> {
    await this.#until(signal, "The verification by the authority", async (limit) => {
      const found = await this.#ask(client.getAuthorizations(order), limit);
      const broken = found.find(({ status }) => status !== "valid" && status !== "pending");
      if (broken !== undefined) throw new AuthorityFault("refused", whyInvalid(broken));
      return found.every(({ status }) => status === "valid") ? true : undefined;
    });
  }

  async #sign(client: acme.Client, order: acme.Order, name: string, signal: AbortSignal): Promise<Issued> {
    const { crypto } = await this.#load();
    const [key, csr] = await crypto.createCsr({ altNames: [name] }, await crypto.createPrivateEcdsaKey());
    await this.#ask(client.finalizeOrder(order, csr), signal);
    const ready = await this.#until(signal, "The signature by the authority", async (limit) => {
      const found = await this.#ask(client.getOrder(order), limit);
      if (found.status === "invalid")
        throw new AuthorityFault("refused", `The authority gave the order for ${name} up without a reason.`);
      return found.status === "valid" ? found : undefined;
    });
    return { chain: await this.#ask(client.getCertificate(ready), signal), key: String(key) };
  }

  /** The client with its account, which the first order makes. A failure is not remembered. */
  async #open(signal: AbortSignal): Promise<acme.Client> {
    this.#client ??= this.#connect().catch((error: unknown) => {
      this.#client = undefined;
      throw faultOf(error);
    });
    return abortable(this.#client, signal);
  }

  async #connect(): Promise<acme.Client> {
    const { account, email } = this.#options;
    const known = await account.read();
    if (known === undefined)
      throw new AuthorityFault(
        "refused",
        `Nobody has agreed to the terms of service of ${this.directory}. Agree to them with \`hibernaut certs add <hostname> --agree-terms\`.`,
      );
    const client = new (await this.#load()).Client({
      directoryUrl: this.directory,
      accountKey: known.key,
      ...(known.url !== null && { accountUrl: known.url }),
    });
    // With a URL this only brings the contact up to date.
    const contact = email === undefined ? [] : [`mailto:${email}`];
    await client.createAccount({ termsOfServiceAgreed: true, contact });
    if (known.url === null) await account.setUrl(client.getAccountUrl());
    return client;
  }

  /** Loads the library with the first order: a platform without certificates does without it. */
  #load(): Promise<Library> {
    this.#library ??= loadLibrary().then((library) => {
      // It has one HTTP client for all authorities; a platform has one authority.
      Object.assign(library.axios.defaults, { httpsAgent: this.#agent, timeout: REQUEST_MS, validateStatus: null });
      return library;
    });
    return this.#library;
  }

  /** Looks again and again until there is an answer. */
  async #until<T>(signal: AbortSignal, what: string, look: (limit: AbortSignal) => Promise<T | undefined>): Promise<T> {
    const limit = within(signal, READY_MS, what);
    for (let pause = FIRST_LOOK_MS; ; pause = Math.min(pause * 2, LONGEST_LOOK_MS)) {
      const found = await look(limit);
      if (found !== undefined) return found;
      await abortable(delay(pause, undefined, { ref: false }), limit);
    }
  }

  /** Waits for one request. Rejects with a fault, or with the signal's reason. */
  async #ask<T>(request: Promise<T>, signal: AbortSignal): Promise<T> {
    try {
      return await abortable(request, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw faultOf(error);
    }
  }
}

/** What an authority wants to find at the name, from the token of its challenge and what the account makes of it. */
async function proofOf(
  kind: ChallengeKind,
  name: string,
  { token, value }: { token: string; value: string },
): Promise<Proof> {
  switch (kind) {
    case "http-01":
      return { kind, hostname: name, token, value };
    case "tls-alpn-01":
      return { kind, hostname: name, certificate: await challengeCertificate(name, value) };
    case "dns-01":
      return { kind, record: challengeRecord(name), value };
  }
}

function whyInvalid({ identifier, status, challenges }: acme.Authorization): string {
  const errors = challenges.map((challenge) => ("error" in challenge ? challenge.error : undefined));
  const detail = errors.map((error: { detail?: unknown } | undefined) => error?.detail).find(Boolean);
  return `The authority could not verify ${identifier.value}: ${typeof detail === "string" ? detail : `its authorization is ${status}`}`;
}

function readRoot(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    const message = `HIBERNAUT_ACME_CA_FILE, ${file}, cannot be read: ${messageOf(error)}. Name a file with a root certificate in PEM that the platform's user can read.`;
    throw new HibernautError("invalid_argument", message, { setting: "HIBERNAUT_ACME_CA_FILE" });
  }
}
