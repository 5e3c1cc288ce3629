/**
 * Sends and receives tar archives of any size. Not over `fetch`, which gives up on a request that takes five minutes
 * to send.
 */
import { type IncomingMessage, request as overHttp } from "node:http";
import { request as overHttps } from "node:https";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { type Address, type ClientOptions, errorOf, platformUnreachable, urlOf } from "./transport.ts";
import type { UnpackedArchive } from "./types.ts";

const TAR = "application/x-tar";

/** Returns the archive at an address. Its stream fails if the connection ends before it. */
export async function readArchive(
  options: ClientOptions,
  address: Address,
  { method = "GET", signal }: { method?: "GET" | "POST"; signal?: AbortSignal | undefined },
): Promise<Readable> {
  return good(await exchange(options, address, { method, signal }));
}

/** Sends an archive to an address and returns the reply. Destroys the archive when that fails. */
export async function writeArchive(
  options: ClientOptions,
  address: Address,
  archive: Readable,
  signal?: AbortSignal,
): Promise<UnpackedArchive> {
  try {
    const reply = await good(await exchange(options, address, { method: "PUT", signal, archive }));
    return JSON.parse(await text(reply)) as UnpackedArchive;
  } finally {
    archive.destroy();
  }
}

/** Resolves as soon as there is a reply, which may be a refusal in the middle of the body. */
function exchange(
  options: ClientOptions,
  address: Address,
  { method, signal, archive }: { method: string; signal: AbortSignal | undefined; archive?: Readable },
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const url = urlOf(options.apiUrl, address);
    const headers = {
      authorization: `Bearer ${options.token}`,
      ...(archive !== undefined && { "content-type": TAR }),
    };
    const start = url.protocol === "https:" ? overHttps : overHttp;
    const { cert, key } = options.clientCertificate ?? {};
    const request = start(url, { method, headers, agent: false, ...(cert !== undefined && { cert, key }) });
    let answered = false;
    request.once("response", (response) => {
      answered = true;
      archive?.unpipe(request);
      resolve(response);
    });
    request.on("error", (cause) => {
      if (!answered) reject(signal?.aborted ? (signal.reason as Error) : platformUnreachable(options, cause));
    });
    archive?.on("error", (error) => {
      reject(error);
      request.destroy();
    });
    const abort = () => request.destroy(signal?.reason as Error);
    signal?.addEventListener("abort", abort);
    request.once("close", () => signal?.removeEventListener("abort", abort));
    if (signal?.aborted) abort();
    else if (archive === undefined) request.end();
    else archive.pipe(request);
  });
}

async function good(response: IncomingMessage): Promise<IncomingMessage> {
  const { statusCode = 0 } = response;
  if (statusCode === 200) return response;
  const said = await text(response);
  response.destroy();
  throw errorOf(statusCode, said);
}
