/** Requests parts of one repository from one registry, and authenticates when the registry asks for it. */
import type { IncomingMessage } from "node:http";
import type { Login } from "../contract.ts";
import { parseChallenges } from "./challenge.ts";
import type { Endpoint } from "./endpoint.ts";
import { RegistryFault } from "./fault.ts";
import { getOnce, type Transport, textOf } from "./request.ts";
import { authorizationFor } from "./token.ts";

/** A repository of a registry, and the login for it. */
interface SessionOptions {
  endpoint: Endpoint;
  transport: Transport;
  /** Empty for the registry itself. */
  repository: string;
  login: Login | undefined;
}

/** Registries redirect to where blobs are stored: once, or twice with a mirror in between. */
const MAX_REDIRECTS = 5;
/** How much to read of the explanation of an error. */
const MAX_COMPLAINT_BYTES = 64 * 1024;

/** Requests about one repository (OCI distribution-spec, "Pull"). */
export class Session {
  readonly #options: SessionOptions;
  #base: Promise<URL> | undefined;
  #authorization: string | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** Whether the registry asked for a login and accepted it. */
  get authorized(): boolean {
    return this.#authorization !== undefined;
  }

  /**
   * Sends a GET request for `path` below `/v2/`. Resolves with a reply of status 200, 206 or 416, whose body the caller
   * has to read or destroy. Rejects with a RegistryFault.
   */
  async get(path: string, headers: Record<string, string>, signal: AbortSignal): Promise<IncomingMessage> {
    const url = new URL(path, await this.#address(signal));
    const first = await this.#send(url, headers, signal);
    if (first.response.statusCode !== 401 || first.elsewhere) return this.#accept(first, signal);
    const { endpoint, transport, repository, login } = this.#options;
    const challenges = parseChallenges(first.response.headers["www-authenticate"] ?? "");
    first.response.destroy();
    const context = { endpoint, transport, repository, login, base: url };
    this.#authorization = await authorizationFor(challenges, context, signal);
    return this.#accept(await this.#send(url, headers, signal), signal);
  }

  #address(signal: AbortSignal): Promise<URL> {
    const { endpoint, transport } = this.#options;
    const asked = this.#base ?? endpoint.base(transport, signal);
    this.#base = asked;
    // A registry that was down at the first request may be up at the next one.
    asked.catch(() => {
      this.#base = undefined;
    });
    return asked;
  }

  async #send(url: URL, headers: Record<string, string>, signal: AbortSignal) {
    const { endpoint, transport } = this.#options;
    let at = url;
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
      // Credentials are for the registry only. The storage that it redirects to has a signature in its address.
      const authorize = at.origin === url.origin && this.#authorization !== undefined;
      const response = await getOnce(
        at,
        { ...headers, ...(authorize && { authorization: this.#authorization }) },
        transport,
        signal,
      );
      const { statusCode = 0, headers: reply } = response;
      if (statusCode < 300 || statusCode > 399 || statusCode === 304 || reply.location === undefined)
        return { response, elsewhere: at.origin !== url.origin };
      response.destroy();
      at = endpoint.follow(reply.location, at);
    }
    throw new RegistryFault("unreachable", `it redirected more than ${MAX_REDIRECTS} times`);
  }

  async #accept(
    { response, elsewhere }: { response: IncomingMessage; elsewhere: boolean },
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const status = response.statusCode ?? 0;
    if (status === 200 || status === 206 || status === 416) return response;
    const { patience } = this.#options.transport;
    const text = await textOf(response, MAX_COMPLAINT_BYTES, patience, signal).catch(() => "");
    const reason = complaint(status, text);
    const retryAfterMs = retryAfter(response.headers["retry-after"]);
    // A refusal by the storage means that its signed address has expired. The registry will issue a new one.
    if (status === 429 || status === 408 || status >= 500 || elsewhere)
      throw new RegistryFault("transient", reason, { retryAfterMs });
    if (status === 404) throw new RegistryFault("missing", reason);
    if (status === 401 || status === 403)
      throw new RegistryFault(this.#options.login === undefined ? "denied" : "login", reason);
    throw new RegistryFault("unreachable", reason);
  }
}

/** Returns the reason in `{"errors":[{"code","message"}]}` (distribution-spec, "Error Codes"), otherwise the status. */
function complaint(status: number, text: string): string {
  try {
    const { errors } = JSON.parse(text) as { errors?: { code?: unknown; message?: unknown }[] };
    const said = errors?.map(({ code, message }) => message ?? code).find((word) => typeof word === "string");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: removes them from what the registry sent
    if (said) return `${said.replace(/[\x00-\x1f\x7f]+/g, " ").slice(0, 200)} (status ${status})`;
  } catch {
    // not a registry's format: the status has to do
  }
  return `it answered with status ${status}`;
}

/** Converts seconds or a date (RFC 9110, section 10.2.3) to milliseconds from now. */
function retryAfter(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}
