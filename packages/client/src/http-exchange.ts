/** One request without the limits of `fetch`, which gives up on one that takes five minutes to send, or to answer. */
import { type IncomingMessage, request as overHttp } from "node:http";
import { request as overHttps } from "node:https";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { type Address, type ClientOptions, errorOf, platformUnreachable, urlOf } from "./transport.ts";

/** What is sent. */
export interface ExchangeBody {
  /** Its media type. */
  type: string;
  content: Readable;
}

/**
 * Sends a request and resolves with the reply as soon as there is one, which may be in the middle of the body. Rejects with an
 * `ApiError` for any other status than 200, or with the signal's reason.
 */
export async function exchange(
  options: ClientOptions,
  address: Address,
  request: { method: string; signal?: AbortSignal | undefined; body?: ExchangeBody },
): Promise<IncomingMessage> {
  const response = await begin(options, address, request);
  const { statusCode = 0 } = response;
  if (statusCode === 200) return response;
  const said = await text(response);
  response.destroy();
  throw errorOf(statusCode, said);
}

/** Sends JSON and resolves with the JSON of the reply, however long that takes. Rejects as {@link exchange} does. */
export async function longPost<T>(
  options: ClientOptions,
  address: Address,
  body: unknown,
  signal: AbortSignal | undefined,
): Promise<T> {
  const content = Readable.from([JSON.stringify(body)], { objectMode: false });
  const reply = await exchange(options, address, {
    method: "POST",
    signal,
    body: { type: "application/json", content },
  });
  try {
    return JSON.parse(await text(reply)) as T;
  } catch (cause) {
    throw signal?.aborted ? signal.reason : platformUnreachable(options, cause);
  }
}

function begin(
  options: ClientOptions,
  address: Address,
  { method, signal, body }: { method: string; signal?: AbortSignal | undefined; body?: ExchangeBody },
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const url = urlOf(options.apiUrl, address);
    const headers = {
      authorization: `Bearer ${options.token}`,
      ...(body !== undefined && { "content-type": body.type }),
    };
    const start = url.protocol === "https:" ? overHttps : overHttp;
    const { cert, key } = options.clientCertificate ?? {};
    const request = start(url, { method, headers, agent: false, ...(cert !== undefined && { cert, key }) });
    let answered = false;
    request.once("response", (response) => {
      answered = true;
      body?.content.unpipe(request);
      resolve(response);
    });
    request.on("error", (cause) => {
      if (!answered) reject(signal?.aborted ? (signal.reason as Error) : platformUnreachable(options, cause));
    });
    body?.content.on("error", (error) => {
      reject(error);
      request.destroy();
    });
    const abort = () => request.destroy(signal?.reason as Error);
    signal?.addEventListener("abort", abort);
    request.once("close", () => signal?.removeEventListener("abort", abort));
    if (signal?.aborted) abort();
    else if (body === undefined) request.end();
    else body.content.pipe(request);
  });
}
