/** Questions that are not ours, asked of the host's own name servers: over UDP, or over TCP as the client did. */
import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { readFile } from "node:fs/promises";
import { connect, isIPv4, isIPv6 } from "node:net";
import { answers } from "./messages.ts";
import { TcpMessages, tcpMessage } from "./tcp.ts";

export interface NameServer {
  address: string;
  port: number;
}

/** A client asks again after 5 s: two servers that are silent must fit into that. */
const SERVER_TIMEOUT_MS = 2_000;
const MOST_SERVERS = 2;
const DNS_PORT = 53;

/** The name servers in the text of a resolv.conf. */
export function parseResolvConf(text: string): NameServer[] {
  const found = [...text.matchAll(/^\s*nameserver\s+(\S+)/gm)].map(([, address = ""]) => address);
  return found.filter((address) => isIPv4(address) || isIPv6(address)).map((address) => ({ address, port: DNS_PORT }));
}

/** The host's name servers now: the file changes when the host changes networks. */
export async function hostNameServers(): Promise<NameServer[]> {
  return parseResolvConf(await readFile("/etc/resolv.conf", "utf8").catch(() => ""));
}

/**
 * Passes a query on and gives back the reply, with the query's own id; undefined when no server answered. The id on
 * the way is a random one and every query has a port of its own, so that nobody can guess a reply.
 */
export async function askUpstream(
  query: Buffer,
  transport: "udp" | "tcp",
  servers: readonly NameServer[],
  timeoutMs: number = SERVER_TIMEOUT_MS,
): Promise<Buffer | undefined> {
  const sent = Buffer.from(query);
  sent.writeUInt16BE(randomInt(65_536), 0);
  for (const server of servers.slice(0, MOST_SERVERS)) {
    const response = await (transport === "udp" ? overUdp : overTcp)(sent, server, AbortSignal.timeout(timeoutMs));
    if (response === undefined) continue;
    response.writeUInt16BE(query.readUInt16BE(0), 0);
    return response;
  }
  return undefined;
}

function overUdp(query: Buffer, { address, port }: NameServer, limit: AbortSignal): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const socket = createSocket(isIPv4(address) ? "udp4" : "udp6");
    let ended = false;
    const end = (response?: Buffer) => {
      if (ended) return;
      ended = true;
      limit.removeEventListener("abort", late);
      socket.close();
      resolve(response);
    };
    const late = () => end();
    limit.addEventListener("abort", late);
    socket.on("error", late);
    socket.on("message", (response) => answers(query, response) && end(response));
    // Connected: the kernel drops what comes from anybody else, and reports a port where nobody listens.
    socket.connect(port, address, (error?: Error) => {
      if (error !== undefined) end();
      else if (!ended) socket.send(query);
    });
  });
}

function overTcp(query: Buffer, { address, port }: NameServer, limit: AbortSignal): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: address });
    const messages = new TcpMessages();
    const end = (response?: Buffer) => {
      limit.removeEventListener("abort", late);
      socket.destroy();
      resolve(response);
    };
    const late = () => end();
    limit.addEventListener("abort", late);
    socket.on("error", late).once("close", late);
    socket.on("data", (chunk) => {
      const response = messages.push(chunk).find((message) => answers(query, message));
      if (response !== undefined) end(Buffer.from(response));
    });
    socket.write(tcpMessage(query));
  });
}
