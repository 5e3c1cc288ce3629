/** What other hosts ask of this one about moves, over the peer port. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { HibernautError, isHibernautError } from "@hibernaut/domain/errors";
import { messageOf } from "@hibernaut/lib/text";
import { textOf } from "../peer-body.ts";
import { decompressed } from "./frames.ts";
import type { FitPapers } from "./papers.ts";
import type { MoveTarget } from "./target.ts";

const PATH = /^\/moves\/([0-9a-f]{14})(?:\/(fit|start|has))?$/;
/** Papers hold a configuration, which may hold files. */
const MAX_JSON_BYTES = 16 * 1024 * 1024;

type Receiver = Pick<MoveTarget, "fit" | "start" | "has" | "receive">;

/** Answers a request if it is about a move. Resolves with whether it was. */
export async function serveMoves(
  target: Receiver,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<boolean> {
  const [, id, what] = PATH.exec(request.url ?? "") ?? [];
  if (id === undefined || request.method !== "POST") return false;
  const gone = new AbortController();
  response.once("close", () => gone.abort(new Error("the other host hung up")));
  try {
    answer(request, response, 200, await act(target, { id, what, request }, gone.signal));
  } catch (error) {
    const known = isHibernautError(error) ? error : new HibernautError("internal", messageOf(error));
    answer(request, response, known.status, { error: known.code, message: known.message, details: known.details });
  }
  return true;
}

async function act(
  target: Receiver,
  { id, what, request }: { id: string; what: string | undefined; request: IncomingMessage },
  signal: AbortSignal,
): Promise<unknown> {
  if (what === "fit") return target.fit((await jsonOf(request)) as FitPapers);
  if (what === "has") {
    const { volumes } = (await jsonOf(request)) as { volumes?: string[] };
    return target.has(id, volumes);
  }
  if (what === "start") target.start(id);
  else await target.receive(id, decompressed(request), signal);
  return {};
}

function answer(request: IncomingMessage, response: ServerResponse, status: number, body: unknown): void {
  if (response.destroyed) return;
  // What has not been read of the request is of no interest any more. The other host stops sending it once it has the
  // answer; closing the connection while it sends would reset it, and the answer would be lost.
  request.unpipe();
  request.resume();
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

async function jsonOf(request: IncomingMessage): Promise<unknown> {
  const tooLong = () => new HibernautError("payload_too_large", "The papers of the machine are too long.");
  return JSON.parse(await textOf(request, MAX_JSON_BYTES, tooLong));
}
