/** What is added to requests of machines on their way out, and what such a request must be. Pure. */
import type { IncomingMessage } from "node:http";

/** Headers by name, in lower case: what the guest says in their place does not count. */
export type Credentials = Readonly<Record<string, string>>;

/** What belongs to a connection and not to the request (RFC 9110 7.6.1). */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  ...["connection", "keep-alive", "proxy-connection", "proxy-authorization", "te", "trailer"],
  ...["transfer-encoding", "upgrade"],
]);

/** Why a request is not passed on, with the status for the guest. Undefined when it is. */
export function requestRefusal(
  { method = "", url = "", headers, rawHeaders }: Pick<IncomingMessage, "method" | "url" | "headers" | "rawHeaders">,
  name: string,
): { status: number; message: string } | undefined {
  // Its answer is the request, with what was added.
  if (method === "TRACE" || method === "CONNECT")
    return { status: 405, message: `${method} is not passed on where credentials are added.` };
  const hosts = rawHeaders.filter((header, index) => index % 2 === 0 && header.toLowerCase() === "host");
  const host = (headers.host ?? "").toLowerCase().replace(/:443$/, "").replace(/\.$/, "");
  // Another name at the same address may be another one's server.
  if (hosts.length !== 1 || host !== name || !(url.startsWith("/") || url === "*"))
    return { status: 421, message: `The request is not for ${name}, which its connection is for.` };
  const { upgrade } = headers;
  if (upgrade !== undefined && upgrade.toLowerCase() !== "websocket")
    return { status: 501, message: `An upgrade to ${upgrade} is not passed on where credentials are added.` };
  return undefined;
}

/**
 * The headers of a request as it goes out: those of the guest, without what belongs to its connection and what is added in
 * its place. `upgrades`: it becomes a WebSocket.
 */
export function headersOut(
  { rawHeaders, headers }: Pick<IncomingMessage, "rawHeaders" | "headers">,
  credentials: Credentials,
  { upgrades }: { upgrades: boolean },
): string[] {
  const named = (headers.connection ?? "").toLowerCase().split(/[\s,]+/);
  const isLeftOut = (header: string) =>
    HOP_BY_HOP.has(header) || named.includes(header) || Object.hasOwn(credentials, header);
  const kept = pairsOf(rawHeaders).filter(([header]) => !isLeftOut(header.toLowerCase()));
  const framing = headers["transfer-encoding"] === undefined ? [] : [["Transfer-Encoding", "chunked"]];
  const upgrade = upgrades ? ["Connection", "Upgrade", "Upgrade", "websocket"] : [];
  return [...kept.flat(), ...framing.flat(), ...upgrade, ...Object.entries(credentials).flat()];
}

/** The headers of an answer as the guest gets it. */
export function headersBack({ rawHeaders, headers }: Pick<IncomingMessage, "rawHeaders" | "headers">): string[] {
  const named = (headers.connection ?? "").toLowerCase().split(/[\s,]+/);
  const isLeftOut = (header: string) => HOP_BY_HOP.has(header) || named.includes(header);
  return pairsOf(rawHeaders)
    .filter(([header]) => !isLeftOut(header.toLowerCase()))
    .flat();
}

function pairsOf(raw: readonly string[]): [string, string][] {
  return raw.flatMap((header, index) => (index % 2 === 0 ? [[header, raw[index + 1] ?? ""] as [string, string]] : []));
}
