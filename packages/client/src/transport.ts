/** One request over HTTP, and what can go wrong with it. */
import { ApiError } from "./error.ts";

/** How to reach a platform. */
export interface ClientOptions {
  /** e.g. `http://127.0.0.1:4280` */
  apiUrl: string;
  token: string;
  /** Instead of the global `fetch`, e.g. in tests. */
  fetch?: typeof fetch;
}

/** What every method takes last. */
export interface CallOptions {
  signal?: AbortSignal;
}

/** One request. */
export interface Call extends CallOptions {
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** The parts of the path, not yet encoded. */
  path: string[];
  query?: Record<string, string | undefined>;
  body?: unknown;
}

/** Sends a request and gives back the reply's JSON; everything but success is an {@link ApiError}, an abort rejects with its reason. */
export async function send<T>(options: ClientOptions, call: Call): Promise<T> {
  const response = await request(options, call);
  const text = await readText(options, call, response);
  const parsed = parse(text);
  if (!response.ok) throw refusalOf(response.status, text, response.headers.get("x-request-id") ?? "");
  if (parsed === undefined) throw notOurs(options, response);
  return parsed as T;
}

/** Sends a request and gives back its reply line by line, without empty ones; fails as {@link send} does. */
export async function* sendForLines(options: ClientOptions, call: Call): AsyncGenerator<string, void> {
  const response = await request(options, call);
  const text = response.ok ? "" : await readText(options, call, response);
  if (!response.ok) throw refusalOf(response.status, text, response.headers.get("x-request-id") ?? "");
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line !== "") yield line;
    }
  } catch (error) {
    throw call.signal?.aborted ? call.signal.reason : brokenOff(options, error);
  }
}

async function request(options: ClientOptions, { method, path, query = {}, body, signal }: Call): Promise<Response> {
  const url = urlOf(options.apiUrl, path, query);
  const headers = {
    authorization: `Bearer ${options.token}`,
    ...(body !== undefined && { "content-type": "application/json" }),
  };
  try {
    const fetcher = options.fetch ?? fetch;
    return await fetcher(url, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      signal: signal ?? null,
    });
  } catch (error) {
    throw signal?.aborted ? signal.reason : unanswered(options, error);
  }
}

async function readText(options: ClientOptions, { signal }: Call, response: Response): Promise<string> {
  try {
    return await response.text();
  } catch (error) {
    throw signal?.aborted ? signal.reason : unanswered(options, error);
  }
}

/** The address of a path. Throws an {@link ApiError} when `apiUrl` is none. */
export function urlOf(apiUrl: string, path: string[], query: Record<string, string | undefined>): URL {
  // "a/.." is another address altogether, and encoding dots does not change that.
  const dots = path.find((part) => part === "." || part === "..");
  if (dots !== undefined) throw new ApiError({ code: "invalid_argument", message: `\`${dots}\` is no name.` });
  let url: URL;
  try {
    url = new URL(`${apiUrl.replace(/\/+$/, "")}/${path.map(encodeURIComponent).join("/")}`);
  } catch (cause) {
    throw new ApiError({
      code: "invalid_argument",
      message: `\`${apiUrl}\` is not the address of a platform. It looks like http://127.0.0.1:4280.`,
      cause,
    });
  }
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
  return url;
}

function unanswered({ apiUrl }: ClientOptions, cause: unknown): ApiError {
  if (isSilence(cause)) {
    const message = `The platform at ${apiUrl} took the request and did not answer in time. It may still carry it out: look before you repeat it.`;
    return new ApiError({ code: "deadline_exceeded", message, cause });
  }
  const message = `The platform does not answer at ${apiUrl}. Start it with \`hibernaut serve\`, or name another one with HIBERNAUT_API_URL.`;
  return new ApiError({ code: "unavailable", message, cause });
}

function brokenOff({ apiUrl }: ClientOptions, cause: unknown): ApiError {
  const message = `The platform at ${apiUrl} broke off its reply: it ended, or this end read too slowly. Ask again.`;
  return new ApiError({ code: "unavailable", message, cause });
}

/** Node's fetch gives up after five minutes without a reply, hidden in the cause of its error. */
function isSilence(error: unknown): boolean {
  const { code } = ((error as Error).cause ?? error) as { code?: unknown };
  return code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT";
}

function notOurs({ apiUrl }: ClientOptions, response: Response): ApiError {
  const message = `What answers at ${apiUrl} is not Hibernaut: its reply is no JSON. Check HIBERNAUT_API_URL.`;
  return new ApiError({ code: "unavailable", message, status: response.status });
}

/** The error that a reply stands for. */
export function refusalOf(status: number, text: string, requestId = ""): ApiError {
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
