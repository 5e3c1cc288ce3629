/** Answers a registry's challenge: Basic, or a token from the server it names (distribution, "Token Authentication"). */
import type { Login } from "../contract.ts";
import type { Challenge } from "./challenge.ts";
import type { Endpoint } from "./endpoint.ts";
import { RegistryFault } from "./fault.ts";
import { getOnce, type Transport, textOf } from "./request.ts";

/** Who asks, where, and for what. */
interface TokenContext {
  endpoint: Endpoint;
  transport: Transport;
  /** Empty to prove the login alone. */
  repository: string;
  login: Login | undefined;
  /** The address that was refused. */
  base: URL;
}

const MAX_TOKEN_BYTES = 256 * 1024;

/** The `Authorization` to send from now on. Rejects with a RegistryFault when there is none. */
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
    throw new RegistryFault("unreachable", `it asks for ${schemes}, where Basic and Bearer are understood`);
  }
  if (login === undefined) throw new RegistryFault("denied", "it asks for a login");
  return basic(login);
}

async function fetchToken({ parameters }: Challenge, context: TokenContext, signal: AbortSignal): Promise<string> {
  const { endpoint, transport, repository, login, base } = context;
  const realm = parameters.get("realm");
  if (realm === undefined) throw new RegistryFault("unreachable", "it does not say where tokens come from");
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
  const reason = `${url.host} gives no token: status ${status}`;
  if (status === 429 || status >= 500) throw new RegistryFault("transient", reason);
  if (status === 400 || status === 401 || status === 403 || status === 404)
    throw new RegistryFault(login === undefined ? "denied" : "login", reason);
  throw new RegistryFault("unreachable", reason);
}

function tokenIn(text: string): string {
  try {
    const { token, access_token } = JSON.parse(text) as { token?: unknown; access_token?: unknown };
    const found = token || access_token;
    // It goes into a header: nothing but visible characters.
    if (typeof found === "string" && /^[\x21-\x7e]+$/.test(found)) return found;
  } catch {
    // said below
  }
  throw new RegistryFault("unreachable", "what its token server answered is no token");
}

function basic({ username, password }: Login): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}
