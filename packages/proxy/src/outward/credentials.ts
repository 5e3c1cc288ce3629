/** What is added to requests of machines on their way out, and what such a request must be. Pure. */
import type { IncomingMessage } from "node:http";

/** Headers by name, in lower case: what the guest says in their place does not count. */
export type Credentials = Readonly<Record<string, string>>;

/** What belongs to a connection and not to the request (RFC 9110 7.6.1). */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  ...["connection", "keep-alive", "proxy-connection", "proxy-authorization", "te", "trailer"],
  ...["transfer-encoding", "upgrade"],
]);
/** What is written here, whatever the guest has in its place or says of it: where a body ends, and whose the request is. */
const WRITTEN: ReadonlySet<string> = new Set(["host", "content-length", "expect"]);

type Head = Pick<IncomingMessage, "rawHeaders" | "headers">;

/** Why a request is not passed on, with the status for the guest. Undefined when it is. */
export function requestRefusal(
  { method = "", url = "", headers, rawHeaders }: Head & Pick<IncomingMessage, "method" | "url">,
  name: string,
): { status: number; message: string } | undefined {
  // Its answer is the request, with what was added.
  if (method === "TRACE" || method === "CONNECT")
    return { status: 405, message: `${method} is not passed on where headers are added.` };
  const hosts = rawHeaders.filter((header, index) => index % 2 === 0 && header.toLowerCase() === "host");
  const host = (headers.host ?? "").toLowerCase().replace(/:443$/, "").replace(/\.$/, "");
  // Another name at the same address may be another one's server.
  if (hosts.length !== 1 || host !== name || !(url.startsWith("/") || url === "*"))
    return { status: 421, message: `The request is not for ${name}, which its connection is for.` };
  const { upgrade } = headers;
  if (upgrade === undefined) return undefined;
  if (upgrade.toLowerCase() !== "websocket")
    return { status: 501, message: `An upgrade to ${upgrade} is not passed on where headers are added.` };
  if (method !== "GET" || bodyOf({ headers }) !== "none")
    return { status: 400, message: "A WebSocket begins with a GET without a body." };
  return undefined;
}

/** How the end of a request's body is known. */
export function bodyOf({ headers }: Pick<Head, "headers">): "chunked" | "counted" | "none" {
  if (headers["transfer-encoding"] !== undefined) return "chunked";
  return headers["content-length"] === undefined ? "none" : "counted";
}

/**
 * The headers of a request to a name as it goes out: those of the guest, without what belongs to its connection and what is
 * added in its place. `upgrades`: it becomes a WebSocket.
 */
export function headersOut(
  head: Head,
  { name, credentials, upgrades = false }: { name: string; credentials: Credentials; upgrades?: boolean },
): string[] {
  const kept = passed(head, (header) => WRITTEN.has(header) || Object.hasOwn(credentials, header));
  const body = bodyOf(head);
  return [
    ...["Host", name],
    ...kept,
    // A server that saw another end of the body would take what follows for a request.
    ...(body === "chunked" ? ["Transfer-Encoding", "chunked"] : []),
    ...(body === "counted" ? ["Content-Length", head.headers["content-length"] ?? "0"] : []),
    ...(upgrades ? ["Connection", "Upgrade", "Upgrade", "websocket"] : []),
    ...Object.entries(credentials).flat(),
  ];
}

/** The headers of an answer as the guest gets it. */
export function headersBack(head: Head): string[] {
  return passed(head, () => false);
}

/** The headers that do not belong to a connection, except for some. */
function passed({ rawHeaders, headers }: Head, isLeftOut: (header: string) => boolean): string[] {
  const named = (headers.connection ?? "").toLowerCase().split(/[\s,]+/);
  return rawHeaders.flatMap((header, index) => {
    const key = header.toLowerCase();
    if (index % 2 === 1 || HOP_BY_HOP.has(key) || isLeftOut(key)) return [];
    // A guest that names the length of a body there means to hide it.
    return named.includes(key) && key !== "content-length" ? [] : [header, rawHeaders[index + 1] ?? ""];
  });
}
