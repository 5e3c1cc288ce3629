/** TCP connections for machines of other hosts: what the two hosts say to each other before the bytes flow. */
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { type Lease, type LeasePeer, type LeaseStart, type PeerTarget, ProxyRefusal } from "../contract.ts";
import { connectPeer } from "../http/connect-peer.ts";
import type { Limits } from "../http/limits.ts";
import { hostUnreachable } from "../http/refusals.ts";
import type { Origin } from "../proxy-protocol.ts";
import { readStart } from "../tcp/read-start.ts";
import { LinkStream } from "./link-stream.ts";

/** How long it may take to reach a host that is asked to wake a machine, in milliseconds: it is up, and near. */
const ASK_MS = 3_000;
/** A line of what hosts say may have this many bytes. */
const LINE_BYTES = 16 * 1024;
const LF = 0x0a;

/** The first line: for which machine a connection is. Keys that are not known are ignored: hosts may be a version apart. */
interface LinkRequest {
  app: string;
  machine: string;
  /** The port of the proxy that the client connected to. */
  port: number;
  serverName: string;
  origin: Origin;
  /** Nobody is to be connected: the machine is only to wake. */
  wakeOnly?: true;
}

/** Origin of a {@link LinkRequest} without a client. */
const NOBODY: Origin = { source: { address: "", port: 0 }, destination: { address: "", port: 0 } };

/** Asks another host to wake a machine. Rejects if the host cannot be reached. */
export async function askToWake(target: PeerTarget, { app, id }: { app: string; id: string }, signal: AbortSignal) {
  const socket = await connectPeer(target, { timeoutMs: ASK_MS, signal });
  socket.on("error", () => {}); // the machine is asked for again when it is still needed
  const request: LinkRequest = { app, machine: id, port: 0, serverName: "", origin: NOBODY, wakeOnly: true };
  socket.end(`${JSON.stringify(request)}\n`);
  socket.resume();
}

/** The answer: the connection is open, or why it is not. */
type LinkAnswer = { wake: LeaseStart } | { refused: { status: number; code: string; message: string } };

/**
 * Connects to a machine of another host. Resolves with the reason if that is not possible; the socket belongs to the
 * caller otherwise. Rejects with the signal's reason.
 */
export async function openLink(
  { appName, machineId }: Pick<Lease, "appName" | "machineId">,
  peer: LeasePeer,
  request: Pick<LinkRequest, "port" | "serverName" | "origin">,
  { limits, signal }: { limits: Pick<Limits, "peerConnectMs">; signal: AbortSignal },
): Promise<Socket | ProxyRefusal> {
  let socket: TLSSocket | undefined;
  try {
    socket = await connectPeer(peer.target("tcp"), { timeoutMs: limits.peerConnectMs, signal });
    socket.on("error", () => {}); // what is wrong with it shows in its close
    const { port, serverName, origin } = request;
    const first: LinkRequest = { app: appName, machine: machineId, port, serverName, origin };
    socket.write(`${JSON.stringify(first)}\n`);
    const answer = await readLine<LinkAnswer>(socket, signal);
    if ("wake" in answer) {
      peer.answered(answer.wake);
      // What the tunnel needs of a socket, it has.
      return new LinkStream(socket) as unknown as Socket;
    }
    const { status, code, message } = answer.refused;
    socket.destroy();
    return new ProxyRefusal(status, code, message);
  } catch (error) {
    socket?.destroy();
    signal.throwIfAborted();
    return hostUnreachable(appName, peer.host, error);
  }
}

/** Reads for which machine a connection of another host is. Rejects if that is not to be understood, or takes too long. */
export async function readLink(socket: TLSSocket, patienceMs: number): Promise<LinkRequest> {
  const request = await readLine<LinkRequest>(socket, AbortSignal.timeout(patienceMs));
  const { app, machine, port, serverName, origin } = request;
  const texts = [app, machine, serverName].every((text) => typeof text === "string");
  if (!texts || !Number.isInteger(port) || typeof origin !== "object") throw new Error("Not a request for a machine.");
  return request;
}

/** Tells the other host that the connection is open. */
export function acceptLink(socket: TLSSocket, wake: LeaseStart): void {
  socket.write(`${JSON.stringify({ wake } satisfies LinkAnswer)}\n`);
}

/** Tells the other host why there is no connection. */
export function refuseLink(socket: TLSSocket, { status, code, message }: ProxyRefusal): void {
  socket.end(`${JSON.stringify({ refused: { status, code, message } } satisfies LinkAnswer)}\n`);
}

/** Reads a line of JSON, and leaves what follows in the socket. */
async function readLine<T>(socket: Socket, signal: AbortSignal): Promise<T> {
  const read = (bytes: Buffer): { kind: "more" } | { kind: "line"; length: number; line: string } => {
    const end = bytes.indexOf(LF);
    if (end !== -1) return { kind: "line", length: end + 1, line: bytes.toString("utf8", 0, end) };
    return bytes.length < LINE_BYTES ? { kind: "more" } : { kind: "line", length: bytes.length, line: "" };
  };
  const { line } = await readStart(socket, read, signal);
  return JSON.parse(line) as T;
}
