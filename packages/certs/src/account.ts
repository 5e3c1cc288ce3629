/** The account at an authority: its key, its address, and that the operator agreed to the terms. */
import { createHash, generateKeyPairSync } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { ifAbsent } from "@hibernaut/lib/absence";
import { replaceFile } from "@hibernaut/lib/durable";

/** An account as it is stored. */
interface Account {
  /** The directory of the authority, for people who look into the file. */
  directory: string;
  /** The terms that were agreed to; null for an authority without terms. */
  terms: string | null;
  /** RFC 3339. */
  agreedAt: string;
  /** PEM. */
  key: string;
  /** The account's address at the authority; null until the first order. */
  url: string | null;
}

/** The file of one authority's account, which only the platform's user can read. */
export class AccountFile {
  readonly #file: string;
  readonly #directory: string;
  #making: Promise<Account> | undefined;

  /** Each authority has a file of its own: a test at its staging server must not touch the real account. */
  constructor(folder: string, directory: string) {
    const hash = createHash("sha256").update(directory).digest("hex").slice(0, 16);
    this.#file = join(folder, `account-${hash}.json`);
    this.#directory = directory;
  }

  /** Undefined while there is no account. Rejects with `failed_precondition` when the file is damaged. */
  async read(): Promise<Account | undefined> {
    const text = await readFile(this.#file, "utf8").catch(ifAbsent(undefined));
    if (text === undefined) return undefined;
    try {
      return JSON.parse(text) as Account;
    } catch {
      // The parser's own message may quote the key.
      const message = `${this.#file} is not valid JSON, so the account at the certificate authority cannot be used. Restore it from a backup, or delete it and agree to the terms again with \`hibernaut certs add <hostname> --agree-terms\`.`;
      throw new HibernautError("failed_precondition", message, { file: this.#file });
    }
  }

  /** Makes the account's key, unless there is one, and notes that its terms were agreed to. */
  async make(terms: string | undefined): Promise<void> {
    this.#making ??= this.#make(terms).finally(() => {
      this.#making = undefined;
    });
    await this.#making;
  }

  /** Notes the account's address at the authority, or that it has none any more. */
  async setUrl(url: string | null): Promise<void> {
    const account = await this.read();
    if (account !== undefined) await this.#write({ ...account, url });
  }

  async #make(terms: string | undefined): Promise<Account> {
    const known = await this.read();
    if (known !== undefined) return known;
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const key = String(privateKey.export({ type: "pkcs8", format: "pem" }));
    const agreedAt = new Date().toISOString();
    return this.#write({ directory: this.#directory, terms: terms ?? null, agreedAt, key, url: null });
  }

  async #write(account: Account): Promise<Account> {
    await replaceFile(this.#file, `${JSON.stringify(account, null, 2)}\n`, { mode: 0o600 });
    return account;
  }
}
