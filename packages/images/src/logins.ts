/** Checks logins with their registry before they are stored, so that a typing error is reported at once. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { Login, RegistryLogins } from "./contract.ts";
import type { LoginStore } from "./credentials.ts";
import { registryHost } from "./reference.ts";
import type { RegistryClient } from "./registry/client.ts";
import { RegistryFault } from "./registry/fault.ts";

/** Longer than any password or token. Docker's tokens have a few KB. */
const MAX_LENGTH = 16_384;

/** The platform's logins, each checked when it is stored. */
export class CheckedLogins implements RegistryLogins {
  readonly #stored: LoginStore;
  readonly #client: RegistryClient;
  readonly #loginMs: number;

  /** A registry may take up to `loginMs` milliseconds to check a login. */
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
  // A colon ends the user name in Basic authentication (RFC 7617, section 2).
  const fits = (text: string) => text !== "" && text.length <= MAX_LENGTH;
  if (fits(username) && fits(password) && !username.includes(":")) return;
  const message = `The login is not valid. Send a user name without a colon and a password, each with 1 to ${MAX_LENGTH} characters.`;
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
    const message = `The registry ${host} does not accept the login of ${username}: ${error.message}. Check the name and the password; many registries expect a token in place of the password.`;
    return new HibernautError("failed_precondition", message, details);
  }
  const message = `The login for ${host} could not be checked: ${error.message}. Nothing was stored. Check the registry's name and port, and the network.`;
  return new HibernautError("unavailable", message, details);
}
