/** Answers a registry's challenge: with Basic, or a token from the server it names (distribution, "Token Authentication"). */
import { wiping } from "@hibernaut/lib/wipe";
import type { Login } from "../contract.ts";
import type { Challenge } from "./challenge.ts";
import type { Endpoint } from "./endpoint.ts";
import { RegistryFault } from "./fault.ts";
import { getOnce, type Transport, textOf } from "./request.ts";

/** What to authenticate for, and with which login. */
interface TokenContext {
  endpoint: Endpoint;
  transport: Transport;
  /** Empty to check only the login. */
  repository: string;
  login: Login | undefined;
  /** The address whose request was refused. */
  base: URL;
}

const MAX_TOKEN_BYTES = 256 * 1024;

/** Returns the `Authorization` header to send from now on. Rejects with a RegistryFault when there is none. */
export async function authorizationFor(
  challenges: readonly Challenge[],
  context: TokenContext,
  signal: AbortSignal,
): Promise<string> {
  const { login } = context;
  const bearer = challenges.find(({ scheme }) => scheme === "bearer");
  if (bearer) return `Bearer ${await fetchToken(bearer, context, signal)}`;
  if (!challenges.some(({ scheme }) => scheme === "basic")) {
    const schemes = challenges.map(({ scheme }) => scheme).join(", ") || "nothing";
    throw new RegistryFault("unreachable", `it asks for ${schemes}, but only Basic and Bearer are supported`);
  }
  if (login === undefined) throw new RegistryFault("denied", "it asks for a login");
  return basic(login);
}

async function fetchToken({ parameters }: Challenge, context: TokenContext, signal: AbortSignal): Promise<string> {
  const { endpoint, transport, repository, login, base } = context;
  const realm = parameters.get("realm");
  if (realm === undefined) throw new RegistryFault("unreachable", "it does not say where to get a token");
  const url = endpoint.follow(realm, base);
  const service = parameters.get("service");
  const scope = repository === "" ? undefined : (parameters.get("scope") ?? `repository:${repository}:pull`);
  if (service !== undefined) url.searchParams.set("service", service);
  if (scope !== undefined) url.searchParams.set("scope", scope);
  if (login !== undefined) url.searchParams.set("account", login.username);
  const headers = login === undefined ? {} : { authorization: basic(login) };
  const response = await getOnce(url, headers, transport, signal);
  const status = response.statusCode ?? 0;
  const text = await textOf(response, MAX_TOKEN_BYTES, transport.patience, signal);
  if (status === 200) return tokenIn(text);
  const reason = `${url.host} did not issue a token: status ${status}`;
  if (status === 429 || status >= 500) throw new RegistryFault("transient", reason);
  if (status === 400 || status === 401 || status === 403 || status === 404)
    throw new RegistryFault(login === undefined ? "denied" : "login", reason);
  throw new RegistryFault("unreachable", reason);
}

function tokenIn(text: string): string {
  try {
    const { token, access_token } = JSON.parse(text) as { token?: unknown; access_token?: unknown };
    const found = token || access_token;
    // Only visible characters, because the token goes into a header.
    if (typeof found === "string" && /^[\x21-\x7e]+$/.test(found)) return found;
  } catch {
    // reported below
  }
  throw new RegistryFault("unreachable", "its token server's answer is not a valid token");
}

function basic({ username, password }: Login): string {
  return `Basic ${wiping(Buffer.from(`${username}:${password}`), (bytes) => bytes.toString("base64"))}`;
}
