/** `fetch` for a platform that asks clients for a certificate. Node's own cannot show one, and Bun's has another option. */
import { Agent, request as overHttps } from "node:https";
import { Readable } from "node:stream";
import type { ReadableStream as NodeStream } from "node:stream/web";
import type { ClientCertificate } from "./transport.ts";

/** How long the platform may be silent, in milliseconds: as long as with Node's `fetch`. */
const SILENCE_MS = 300_000;
/** The code of the error after that time, which `transport.ts` knows. */
const SILENT = "ERR_HIBERNAUT_SILENT";
/** Statuses whose responses have no body. */
const WITHOUT_BODY = new Set([204, 205, 304]);

/** Returns what the client needs of `fetch`, for addresses with https. Connections are kept for the next request. */
export function certifiedFetch({ cert, key }: ClientCertificate): typeof fetch {
  const agent = new Agent({ keepAlive: true, cert, key });
  return (url, { method = "GET", headers, body, signal } = {}) =>
    new Promise((resolve, reject) => {
      const options = { method, headers: Object.fromEntries(new Headers(headers)), agent, cert, key };
      const request = overHttps(String(url), { ...options, ...(signal && { signal }), timeout: SILENCE_MS });
      const sent = isStream(body) ? Readable.fromWeb(body) : undefined;
      let answered = false;
      request.once("response", (reply) => {
        answered = true;
        // A refusal in the middle of the body.
        sent?.unpipe(request);
        const { statusCode: status = 0, rawHeaders } = reply;
        const fields = new Headers();
        for (let at = 0; at < rawHeaders.length; at += 2)
          fields.append(rawHeaders[at] as string, rawHeaders[at + 1] as string);
        const whole = WITHOUT_BODY.has(status) ? null : (Readable.toWeb(reply) as unknown as ReadableStream);
        if (whole === null) reply.resume();
        resolve(new Response(whole, { status, headers: fields }));
      });
      request.on("timeout", () => {
        request.destroy(Object.assign(new Error("The platform did not answer in time."), { code: SILENT }));
      });
      request.on("error", (error) => {
        if (!answered) reject(error);
      });
      request.once("close", () => sent?.destroy());
      sent?.on("error", (error) => {
        reject(error);
        request.destroy(error);
      });
      if (sent !== undefined) sent.pipe(request);
      else request.end(body as string | null | undefined);
    });
}

/** Node's types and those of browsers differ about the same class. */
function isStream(body: unknown): body is NodeStream {
  return body instanceof ReadableStream;
}
