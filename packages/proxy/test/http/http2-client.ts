/** A client of HTTP/2, as Node has it, and all that comes of a request. */
import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from "node:http2";
import { onTestFinished } from "vitest";

/** A connection that is gone when the test has finished. */
export function session(port: number): ClientHttp2Session {
  const client = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false, servername: "shop.test" });
  client.on("error", () => {});
  onTestFinished(() => client.destroy());
  return client;
}

export interface Reply {
  /** 0 if there was no response. */
  status: number;
  headers: Record<string, unknown>;
  body: string;
  /** Statuses of the responses before the final one. */
  interim: unknown[];
  trailers: object;
  /** The code with which the stream ended; 0 if it ended well. */
  reset: number;
  /** Whether a client takes the response for whole. */
  whole: boolean;
}

/** Sends one request, and waits until its stream has closed. */
export async function ask(
  client: ClientHttp2Session,
  headers: OutgoingHttpHeaders = {},
  body?: Buffer | string,
): Promise<Reply> {
  const stream = client.request({ ":authority": "shop.test", ...headers }, { endStream: body === undefined });
  const reply: Reply = { status: 0, headers: {}, body: "", interim: [], trailers: {}, reset: 0, whole: false };
  stream.on("error", () => {});
  stream.on("headers", (interim) => reply.interim.push(interim[":status"]));
  stream.on("response", (found) => Object.assign(reply, { status: Number(found[":status"]), headers: { ...found } }));
  stream.on("trailers", (found) => (reply.trailers = { ...found }));
  stream.setEncoding("latin1").on("data", (piece: string) => (reply.body += piece));
  // Node also says so after a reset with CANCEL.
  stream.on("end", () => (reply.whole = !stream.aborted && stream.rstCode === 0));
  const closed = new Promise<void>((resolve) => stream.once("close", resolve));
  if (body !== undefined) stream.end(body);
  await closed;
  reply.reset = stream.rstCode;
  return reply;
}
