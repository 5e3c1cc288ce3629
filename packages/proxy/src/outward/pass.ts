/** One request of a machine on its way to a name, with what is added. */
import type { ClientRequest, IncomingMessage, ServerResponse } from "node:http";
import { type Agent, request } from "node:https";
import type { Socket } from "node:net";
import { pipeline } from "node:stream/promises";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import { bodyOf, type Credentials, headersBack, headersOut } from "./credentials.ts";

interface PassOptions {
  name: string;
  credentials: Credentials;
  /** Connects to the name. */
  agent: Agent;
  /** Ends the request. */
  signal: AbortSignal;
  /** How long a WebSocket may be silent, in milliseconds. */
  idleMs: number;
}

type Refusal = { status: number; message: string } | undefined;

/** Resolves once the request has been answered. Never rejects because of what guest or server do. */
export async function passRequest(
  asked: IncomingMessage,
  reply: ServerResponse,
  refusal: Refusal,
  options: PassOptions,
): Promise<void> {
  if (refusal !== undefined) return refuse(reply, refusal.status, refusal.message);
  let sent: ClientRequest | undefined;
  try {
    sent = outgoing(asked, options, { upgrades: false });
    const answered = answerTo(sent);
    // The answer may come before the request is over, and may end it.
    const upload = bodyOf(asked) === "none" ? void sent.end() : pipeline(asked, sent).catch(() => {});
    const answer = await answered;
    reply.writeHead(answer.statusCode ?? 502, headersBack(answer));
    await pipeline(answer, reply);
    await upload;
  } catch (error) {
    sent?.destroy();
    // Whether the server got the request is for the guest to judge, as on a connection of its own.
    if (reply.headersSent || sent?.reusedSocket === true) reply.destroy();
    else refuse(reply, 502, `${options.name} was not reached: ${messageOf(error)}.`);
  }
}

/** Resolves once the server has answered: the WebSocket lives by itself then, or its refusal has been passed on. */
export async function passUpgrade(
  asked: IncomingMessage,
  { guest, first }: { guest: Socket; first: Buffer },
  refusal: Refusal,
  options: PassOptions,
): Promise<void> {
  if (refusal !== undefined) {
    guest.end(`HTTP/1.1 ${refusal.status} Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
    return;
  }
  const sent = outgoing(asked, options, { upgrades: true });
  try {
    const upgraded = new Promise<{ answer: IncomingMessage; upstream?: Socket; early?: Buffer }>((resolve, reject) => {
      sent.once("upgrade", (answer, upstream: Socket, early: Buffer) => resolve({ answer, upstream, early }));
      answerTo(sent).then((answer) => resolve({ answer }), reject);
    });
    sent.end();
    const { answer, upstream, early } = await upgraded;
    if (upstream === undefined) {
      guest.write(headOf(answer, [...headersBack(answer), "Connection", "close"]));
      await pipeline(answer, guest);
      return;
    }
    guest.write(headOf(answer, answer.rawHeaders));
    if (early !== undefined && early.length > 0) upstream.unshift(early);
    if (first.length > 0) guest.unshift(first);
    for (const one of [guest, upstream])
      one.on("error", () => one.destroy()).setTimeout(options.idleMs, () => one.destroy());
    for (const [from, to] of [
      [guest, upstream],
      [upstream, guest],
    ] as const)
      background(
        pipeline(from, to).catch(() => guest.destroy()),
        "a WebSocket that headers are added to",
      );
  } catch {
    sent.destroy();
    guest.destroy();
  }
}

function outgoing(
  asked: IncomingMessage,
  { name, credentials, agent, signal }: PassOptions,
  how: { upgrades: boolean },
) {
  return request({
    ...{ agent, host: name, port: 443, method: asked.method, path: asked.url, signal },
    headers: headersOut(asked, { name, credentials, ...how }),
    setDefaultHeaders: false,
  });
}

/** Rejects when the connection ends without an answer. */
function answerTo(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.once("response", resolve).on("error", reject);
    sent.once("close", () => reject(new Error("it ended the connection without an answer")));
  });
}

function refuse(reply: ServerResponse, status: number, message: string): void {
  reply.writeHead(status, { "Content-Type": "text/plain; charset=utf-8", Connection: "close" });
  reply.end(`${message}\n`);
}

/** A head that no library writes. */
function headOf({ statusCode, statusMessage }: IncomingMessage, headers: readonly string[]): string {
  const lines = headers.flatMap((header, at) => (at % 2 === 0 ? [`${header}: ${headers[at + 1]}`] : []));
  return [`HTTP/1.1 ${statusCode} ${statusMessage}`, ...lines, "", ""].join("\r\n");
}
