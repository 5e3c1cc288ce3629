/** Passes questions on to the host's name servers, over UDP or TCP, whichever the client used. */
import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { readFile } from "node:fs/promises";
import { connect, isIPv4, isIPv6 } from "node:net";
import { answers } from "./messages.ts";
import { TcpMessages, tcpMessage } from "./tcp.ts";

/** Where a name server listens. */
export interface NameServer {
  address: string;
  port: number;
}

/** Clients ask again after 5 s, and two silent servers must fit into that. */
const SERVER_TIMEOUT_MS = 2_000;
const MAX_SERVERS = 2;
const DNS_PORT = 53;

/** Returns the name servers in the text of a resolv.conf. */
export function parseResolvConf(text: string): NameServer[] {
  const found = [...text.matchAll(/^\s*nameserver\s+(\S+)/gm)].map(([, address = ""]) => address);
  return found.filter((address) => isIPv4(address) || isIPv6(address)).map((address) => ({ address, port: DNS_PORT }));
}

/** Returns the host's current name servers. They change when the host changes networks. */
export async function hostNameServers(): Promise<NameServer[]> {
  return parseResolvConf(await readFile("/etc/resolv.conf", "utf8").catch(() => ""));
}

/**
 * Passes a query on and returns the reply. Undefined when no server answered in time. Each query is sent with a random id
 * from a new port, so that an attacker cannot guess a reply; the reply has the original id again.
 */
export async function askUpstream(
  query: Buffer,
  transport: "udp" | "tcp",
  servers: readonly NameServer[],
): Promise<Buffer | undefined> {
  const sent = Buffer.from(query);
  sent.writeUInt16BE(randomInt(65_536), 0);
  for (const server of servers.slice(0, MAX_SERVERS)) {
    const limit = AbortSignal.timeout(SERVER_TIMEOUT_MS);
    const response = await (transport === "udp" ? overUdp : overTcp)(sent, server, limit);
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
    // On a connected socket, the kernel drops what other senders send, and reports a port on which nothing listens.
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
