/** Asks the platform's API on behalf of a request: with its token, its lease, and as long as its client waits. */
import type { ErrorCode } from "@hibernaut/domain/errors";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { AskPlatform, PlatformRequest } from "./contract.ts";
import { PlatformRefusal, Refusal } from "./failure.ts";

/** Where clients of Fly put the nonce of a lease, and where the platform expects it. */
const NONCE = { fly: "fly-machine-lease-nonce", platform: "hibernaut-lease-nonce" } as const;

/** Tokens of Fly's own, which say by themselves what they are for. */
const MACAROON = /^fm(1|2|1r|1a)_/;

/** Asks, and returns the body of the answer. Rejects with a {@link PlatformRefusal}. */
export type Ask = (method: PlatformRequest["method"], path: string, body?: object) => Promise<unknown>;

/** Returns what asks for the request. Throws a {@link Refusal} for a token that cannot be one of this platform's. */
export function askFor(request: FastifyRequest, reply: FastifyReply, ask: AskPlatform): Ask {
  const nonce = request.headers[NONCE.fly] ?? request.headers[NONCE.platform];
  const headers = {
    authorization: `Bearer ${tokenOf(request.headers.authorization)}`,
    "x-request-id": request.id,
    ...(typeof nonce === "string" && { [NONCE.platform]: nonce }),
  };
  const signal = goneSignal(reply);
  return async (method, url, body) => {
    signal.throwIfAborted();
    const { statusCode, reply: content } = await ask({
      ...{ method, url, signal, remoteAddress: request.ip },
      headers: body === undefined ? headers : { ...headers, "content-type": "application/json" },
      ...(body !== undefined && { payload: JSON.stringify(body) }),
    });
    if (statusCode < 400) return content;
    const { error, message, details } = content as { error: ErrorCode; message: string; details: object };
    throw new PlatformRefusal(statusCode, error, message, { ...details });
  };
}

/** Returns the token of a request. Clients say `Bearer`, or `FlyV1` before a list of tokens. Throws a {@link Refusal}. */
export function tokenOf(header: string | undefined): string {
  const [scheme = "", token = ""] = (header ?? "").split(/ +/, 2);
  if (token === "" || !/^(bearer|flyv1)$/i.test(scheme))
    throw new Refusal(
      401,
      "unauthenticated: This request needs a token. Set FLY_API_TOKEN to one that `hibernaut tokens create` made.",
    );
  if (MACAROON.test(token))
    throw new Refusal(
      401,
      "unauthenticated: This is a token of Fly's, which only Fly can read. Set FLY_API_TOKEN to one that `hibernaut tokens create` made.",
    );
  return token;
}

/** Aborted when the client has gone before it got its answer. */
function goneSignal(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  const check = () => {
    if (!reply.raw.writableFinished) controller.abort(new Refusal(499, "The client is gone."));
  };
  if (reply.raw.destroyed) check();
  else reply.raw.once("close", check);
  return controller.signal;
}

/** A path of the platform's API, with each name encoded. Throws a {@link Refusal} for names that would lead elsewhere. */
export function path(parts: TemplateStringsArray, ...names: readonly string[]): string {
  const lost = names.find((name) => /^\.{0,2}$/.test(name) || !name.isWellFormed());
  if (lost !== undefined) throw new Refusal(404, `not_found: There is nothing with the name ${JSON.stringify(lost)}.`);
  return parts.reduce((whole, part, at) => `${whole}${encodeURIComponent(names[at - 1] ?? "")}${part}`);
}
