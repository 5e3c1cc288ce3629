/** Logins that are shown to their registry before they are stored: a typing error is found where it is made. */
import { HibernautError } from "../domain/errors.ts";
import type { Login, RegistryLogins } from "./contract.ts";
import type { LoginStore } from "./credentials.ts";
import { registryHost } from "./reference.ts";
import type { RegistryClient } from "./registry/client.ts";
import { RegistryFault } from "./registry/fault.ts";

/** Longer than any password or token; docker's tokens have some KB. */
const MAX_LENGTH = 16_384;

/** The platform's logins, checked when they are made. */
export class CheckedLogins implements RegistryLogins {
  readonly #stored: LoginStore;
  readonly #client: RegistryClient;
  readonly #loginMs: number;

  /** A registry may take `loginMs` to say what it thinks of a login. */
  constructor(stored: LoginStore, client: RegistryClient, loginMs: number) {
    this.#stored = stored;
    this.#client = client;
    this.#loginMs = loginMs;
  }

  list(): Promise<{ host: string; username: string }[]> {
    return this.#stored.list();
  }

  async get(host: string): Promise<{ host: string; username: string } | undefined> {
    const login = await this.#stored.get(registryHost(host));
    return login && { host: registryHost(host), username: login.username };
  }

  async put(name: string, login: Login, signal?: AbortSignal): Promise<void> {
    const host = registryHost(name);
    checkWords(login);
    const limit = AbortSignal.timeout(this.#loginMs);
    try {
      await this.#client.checkLogin(host, login, signal ? AbortSignal.any([signal, limit]) : limit);
    } catch (error) {
      signal?.throwIfAborted();
      throw limit.aborted ? tooLate(host, this.#loginMs) : refusal(error, host, login.username);
    }
    await this.#stored.put(host, login);
  }

  delete(host: string): Promise<boolean> {
    return this.#stored.delete(registryHost(host));
  }
}

function checkWords({ username, password }: Login): void {
  // A colon ends the user's name in a Basic login (RFC 7617, section 2).
  const fits = (text: string) => text !== "" && text.length <= MAX_LENGTH;
  if (fits(username) && fits(password) && !username.includes(":")) return;
  const message = `A user name and a password are needed, neither over ${MAX_LENGTH} characters, no colon in the name.`;
  throw new HibernautError("invalid_argument", message);
}

function tooLate(host: string, limitMs: number): HibernautError {
  const message = `The registry ${host} did not answer within ${limitMs / 1000} s, so the login could not be checked. Nothing was stored. Check the registry's name and the network, then log in again.`;
  return new HibernautError("unavailable", message, { registry: host });
}

function refusal(error: unknown, host: string, username: string): unknown {
  if (!(error instanceof RegistryFault)) return error;
  const details = { registry: host, username, reason: error.message };
  if (error.kind === "login" || error.kind === "denied") {
    const message = `The registry ${host} does not take the login of ${username}: ${error.message}. Check the name and the password; many registries want a token in place of the password.`;
    return new HibernautError("failed_precondition", message, details);
  }
  const message = `The login for ${host} could not be checked: ${error.message}. Nothing was stored. Check the registry's name and port, and the network.`;
  return new HibernautError("unavailable", message, details);
}
