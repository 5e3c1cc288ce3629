/** Sends one request over HTTP and reads its reply. */
import { ApiError } from "./error.ts";

/** What a platform is shown that asks clients for a certificate. */
export interface ClientCertificate {
  /** PEM, with the authorities between it and the one that the platform knows, if there are any. */
  cert: string;
  /** PEM, without a passphrase. */
  key: string;
}

/** How to reach a platform. */
export interface ClientOptions {
  /** For example `http://127.0.0.1:4280`. */
  apiUrl: string;
  /** Empty where a cookie authenticates, as in browsers. */
  token: string;
  /** For a platform that asks for one, in addition to the token. Needs https. */
  clientCertificate?: ClientCertificate | undefined;
  /** The nonce of a lease, sent with every request that has none of its own. Default: none. */
  leaseNonce?: string | undefined;
  /** Replaces the global `fetch`, for example in tests. */
  fetch?: typeof fetch;
}

/** What every method takes last. */
export interface CallOptions {
  /** Aborts the call, which then rejects with the signal's reason. */
  signal?: AbortSignal;
  /** The nonce of the lease that the caller has on the machine. Default: that of the client, if it has one. */
  leaseNonce?: string | undefined;
}

/** The address of a request. */
export interface Address {
  /** A path of the API, with the names of its parts in braces. */
  path: string;
  /** The parts by name, not yet encoded. */
  params?: Record<string, string>;
  /** What is undefined is left out. */
  query?: Record<string, string | readonly string[] | number | boolean | undefined>;
}

/** What lists of a whole cluster take. */
export interface ListOptions extends CallOptions {
  /**
   * In a cluster, is called with the names of the hosts that did not answer in time: what they have is left out, except for
   * machines, which are listed as they were last known. By default, nobody is told.
   */
  onMissing?: ((hosts: string[]) => void) | undefined;
}

/** One request. */
export interface Call extends ListOptions, Address {
  method: string;
  body?: unknown;
  /** Sent as they are, in place of a body of JSON. */
  bytes?: AsyncIterable<Uint8Array>;
}

/**
 * Sends a request and returns the JSON of the reply. Rejects with an {@link ApiError} unless the request succeeds, or
 * with the signal's reason when aborted.
 */
export async function send<T>(options: ClientOptions, call: Call): Promise<T> {
  const response = await request(options, call);
  const text = await readText(options, call, response);
  const parsed = parse(text);
  if (!response.ok) throw errorOf(response.status, text, response.headers.get("x-request-id") ?? "");
  if (parsed === undefined) throw notHibernaut(options, response);
  const missing = response.headers.get("hibernaut-hosts-missing");
  if (missing !== null) call.onMissing?.(missing.split(", "));
  return parsed as T;
}

/** Sends a request and yields the lines of the reply as they come, without empty ones. Fails as {@link send} does. */
export async function* sendForLines(options: ClientOptions, call: Call): AsyncGenerator<string, void> {
  const response = await request(options, call);
  const text = response.ok ? "" : await readText(options, call, response);
  if (!response.ok) throw errorOf(response.status, text, response.headers.get("x-request-id") ?? "");
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for await (const chunk of chunksOf(response.body)) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line !== "") yield line;
    }
  } catch (error) {
    throw call.signal?.aborted ? call.signal.reason : brokenOff(options, error);
  }
}

/** Not every browser can iterate over a stream itself. */
async function* chunksOf(body: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array, void> {
  if (body === null) return;
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    // A stream that failed rejects with what was thrown already.
    await reader.cancel().catch(() => {});
  }
}

async function request(
  options: ClientOptions,
  { method, body, bytes, signal, leaseNonce = options.leaseNonce, ...address }: Call,
): Promise<Response> {
  const url = urlOf(options.apiUrl, address);
  const headers = {
    ...(options.token !== "" && { authorization: `Bearer ${options.token}` }),
    ...(body !== undefined && { "content-type": "application/json" }),
    ...(bytes !== undefined && { "content-type": "application/octet-stream" }),
    ...(leaseNonce !== undefined && { "hibernaut-lease-nonce": leaseNonce }),
  };
  try {
    const { fetch: fetcher = fetch } = options;
    return await fetcher(url, {
      method: method.toUpperCase(),
      headers,
      body: bytes === undefined ? (body === undefined ? null : JSON.stringify(body)) : streamOf(bytes),
      // What `fetch` asks for with a stream: the request is sent before the reply is read.
      ...(bytes !== undefined && { duplex: "half" }),
      signal: signal ?? null,
    });
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw error instanceof ApiError ? error : unanswered(options, error);
  }
}

/** Reads no more from `bytes` than the connection takes, and ends the reading when the request ends. */
function streamOf(bytes: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = bytes[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const next = await reader.next();
      if (next.done) controller.close();
      else controller.enqueue(next.value);
    },
    async cancel() {
      await reader.return?.();
    },
  });
}

async function readText(options: ClientOptions, { signal }: Call, response: Response): Promise<string> {
  try {
    return await response.text();
  } catch (error) {
    throw signal?.aborted ? signal.reason : unanswered(options, error);
  }
}

/** Returns the URL of a request. Throws an {@link ApiError} when `apiUrl` isn't a URL. */
export function urlOf(apiUrl: string, { path, params = {}, query = {} }: Address): URL {
  const encoded = path.replace(/\{(\w+)\}/g, (_part, name: string) => encodeURIComponent(nameIn(params, name)));
  let url: URL;
  try {
    url = new URL(apiUrl.replace(/\/+$/, "") + encoded);
  } catch (cause) {
    throw new ApiError({
      code: "invalid_argument",
      message: `\`${apiUrl}\` is not a valid address of a platform. It looks like http://127.0.0.1:4280.`,
      cause,
    });
  }
  for (const [name, value] of Object.entries(query))
    for (const one of [value ?? []].flat()) url.searchParams.append(name, String(one));
  return url;
}

function nameIn(params: Record<string, string>, name: string): string {
  const value = params[name] ?? "";
  // A path with "." or ".." leads somewhere else, and encoding the dots doesn't change that.
  if (value === "." || value === "..")
    throw new ApiError({ code: "invalid_argument", message: `\`${value}\` is not a valid name.` });
  return value;
}

/** The error of a platform that can't be reached. */
export function platformUnreachable(options: ClientOptions, cause: unknown): ApiError {
  const { apiUrl } = options;
  const distrust = distrustOf(apiUrl, cause) ?? rejectionOf(options, cause);
  if (distrust !== undefined) return new ApiError({ code: "unavailable", message: distrust, cause });
  const message = `The platform does not answer at ${apiUrl}. Start it with \`hibernaut serve\`, or set HIBERNAUT_API_URL to the address of another one.`;
  return new ApiError({ code: "unavailable", message, cause });
}

/** The codes of Node for a certificate that no known authority signed. */
const UNTRUSTED = new Set([
  "SELF_SIGNED_CERT_IN_CHAIN",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
]);

/** Returns what is wrong with TLS, if that is what failed. */
function distrustOf(apiUrl: string, error: unknown): string | undefined {
  const { code, message } = ((error as Error).cause ?? error) as { code?: unknown; message?: string };
  const name = String(code);
  if (UNTRUSTED.has(name))
    return `The certificate of ${apiUrl} is signed by an authority that is not known here (${name}). Set HIBERNAUT_API_CA, or NODE_EXTRA_CA_CERTS, to a file with the authority's certificate.`;
  if (name === "ERR_TLS_CERT_ALTNAME_INVALID")
    return `The certificate of ${apiUrl} is for other names: ${message}. Use one of them in HIBERNAUT_API_URL.`;
  if (name === "CERT_HAS_EXPIRED")
    return `The certificate of ${apiUrl} has expired. Renew it on the platform, which adopts the new one by itself.`;
  if (/^ERR_SSL_.*CERTIFICATE_REQUIRED/.test(name))
    return `The platform at ${apiUrl} asks clients for a certificate (HIBERNAUT_API_TLS_CLIENT_CA), and this client has none. Set HIBERNAUT_API_CLIENT_CERT and HIBERNAUT_API_CLIENT_KEY.`;
  if (/^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)/.test(name))
    return `The server at ${apiUrl} does not serve TLS. Use http:// in HIBERNAUT_API_URL.`;
  return undefined;
}

/**
 * How a connection ends that the platform breaks off: Node sends no alert for a certificate that it does not accept, and
 * its `fetch` does not tell the one for a certificate that is missing.
 */
const BROKEN_OFF = new Set<unknown>(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"]);

/** Returns that the platform may not accept the client's certificate, if it looks like that. */
function rejectionOf({ apiUrl, clientCertificate }: ClientOptions, error: unknown): string | undefined {
  const { code } = ((error as Error).cause ?? error) as { code?: unknown };
  const rejected = clientCertificate !== undefined && /^ERR_SSL_.*ALERT/.test(String(code));
  if (!rejected && !(BROKEN_OFF.has(code) && apiUrl.startsWith("https:"))) return undefined;
  const what = `The platform at ${apiUrl} broke off the connection without an answer (${String(code)})`;
  return clientCertificate === undefined
    ? `${what}. If it asks clients for a certificate, set HIBERNAUT_API_CLIENT_CERT and HIBERNAUT_API_CLIENT_KEY. Otherwise, see whether it is running, and try again.`
    : `${what}, as it does with a client certificate that it does not accept. HIBERNAUT_API_CLIENT_CERT must be signed by one of the authorities in the platform's HIBERNAUT_API_TLS_CLIENT_CA.`;
}

function unanswered(options: ClientOptions, cause: unknown): ApiError {
  if (!isTimeout(cause)) return platformUnreachable(options, cause);
  const message = `The platform at ${options.apiUrl} accepted the request and did not answer in time. It may still carry it out: check before you repeat it.`;
  return new ApiError({ code: "deadline_exceeded", message, cause });
}

function brokenOff({ apiUrl }: ClientOptions, cause: unknown): ApiError {
  const message = `The platform at ${apiUrl} broke off its reply, because it ended or because you read too slowly. Try again.`;
  return new ApiError({ code: "unavailable", message, cause });
}

/** Node's fetch gives up after five minutes without a reply, and says so in the cause of its error. So does ours. */
const TIMEOUTS = new Set<unknown>(["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT", "ERR_HIBERNAUT_SILENT"]);

function isTimeout(error: unknown): boolean {
  const { code } = ((error as Error).cause ?? error) as { code?: unknown };
  return TIMEOUTS.has(code);
}

function notHibernaut({ apiUrl }: ClientOptions, response: Response): ApiError {
  const message = `The server at ${apiUrl} is not Hibernaut: its reply is not JSON. Check HIBERNAUT_API_URL.`;
  return new ApiError({ code: "unavailable", message, status: response.status });
}

/** Returns the error that a reply contains. */
export function errorOf(status: number, text: string, requestId = ""): ApiError {
  const { error, message, details, request_id } = (parse(text) ?? {}) as Record<string, unknown>;
  return new ApiError({
    code: typeof error === "string" ? error : "internal",
    message: typeof message === "string" ? message : `The platform answered with status ${status}.`,
    status,
    details: typeof details === "object" && details !== null ? (details as Record<string, unknown>) : {},
    requestId: typeof request_id === "string" ? request_id : requestId,
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
