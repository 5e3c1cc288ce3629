/** A client at an address of its own, whose requests each have a connection. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";

export interface Answered {
  status: number;
  headers: IncomingMessage["headers"];
  body: string;
}

/** Asks from `localAddress`. `answer` settles with the reply, also a failed one; `leave` closes the connection. */
export function askFrom(
  localAddress: string,
  url: string,
  {
    method = "GET",
    headers = {},
    body = "",
  }: { method?: string; headers?: Record<string, string>; body?: string | Buffer } = {},
): { answer: Promise<Answered>; leave(): void } {
  const asked = request(url, { method, headers, localAddress, agent: false });
  asked.end(body);
  const answer = once(asked, "response").then(async (events) => {
    const { statusCode: status = 0, headers: theirs } = events[0] as IncomingMessage;
    return { status, headers: theirs, body: await text(events[0] as IncomingMessage) };
  });
  // One that leaves gets none.
  answer.catch(() => {});
  return { answer, leave: () => void asked.destroy() };
}
