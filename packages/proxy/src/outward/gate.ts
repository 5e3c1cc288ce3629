/**
 * Where machines' connections to names end, for a moment: their first bytes say which name they are for, and if the
 * machine's rules allow that name, they are led there. The name is certain, as this host finds its address by itself: a
 * machine that names one and aims at another reaches the one that it names.
 */
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { type Egress, isNamed } from "@hibernaut/domain/egress";
import { background } from "@hibernaut/lib/background";
import { ProxyRefusal } from "../contract.ts";
import { openTunnel } from "../http/tunnel.ts";
import { ALERTS, alertRecord, readClientHello } from "../tcp/client-hello.ts";
import { readStart } from "../tcp/read-start.ts";
import { pipe } from "../tcp/splice.ts";
import { readHost } from "./asked-host.ts";
import { NotReached, type Reach } from "./reach.ts";

/** Open connections: each costs two descriptors. One machine takes no other's share. */
const CONNECTIONS = { total: 4_096, perMachine: 256 };
/** A client says at once whom it wants, in milliseconds. */
const HELLO_MS = 10_000;
/** Looking a name up and connecting, in milliseconds. */
const REACH_MS = 30_000;
/**
 * How long a connection may be silent, in milliseconds. A machine's connections outlive its sleep, and this is the longest
 * sleep that they outlive.
 */
const IDLE_MS = 3_600_000;
/** How long a side may leave bytes waiting without taking one, in milliseconds: a machine that sleeps takes none. */
const STALL_MS = 3_600_000;

export interface GateOptions {
  /** The address to listen on: the host's in the machines' network. */
  address: string;
  /** The rules of the machine with this address. Undefined when it has none. */
  rulesOf(machine: string): Egress | undefined;
  reach: Reach;
  /** Called when a machine wants a name that it may not reach, or none. */
  onRefused(machine: string, refused: { name: string | undefined; port: number }): void;
  /** Ports that names are reached at. Default: those of HTTP and TLS. */
  outside?: { http: number; tls: number };
}

export interface Gate {
  /** Where it listens. */
  ports: { http: number; tls: number };
  /** Cuts all connections. */
  close(): Promise<void>;
}

type Kind = "http" | "tls";

/** What a client is told, in its own protocol. */
const ANSWERS = {
  // Its end is that of the connection.
  http: Buffer.from(
    "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\nThe rules of this machine (network.egress) do not allow that.\n",
  ),
  tls: alertRecord(ALERTS.unrecognizedName),
};

/** Starts listening at two free ports. Rejects with the system's error when it cannot. */
export async function openGate(options: GateOptions): Promise<Gate> {
  const open = new Map<string, number>();
  const sockets = new Set<Socket>();
  const ended = new AbortController();
  const outside = options.outside ?? { http: 80, tls: 443 };

  const take = (kind: Kind) => (socket: Socket) => {
    const machine = socket.remoteAddress ?? "";
    const count = open.get(machine) ?? 0;
    socket.on("error", () => socket.destroy());
    if (count >= CONNECTIONS.perMachine || sockets.size >= CONNECTIONS.total) {
      socket.resetAndDestroy();
      return;
    }
    open.set(machine, count + 1);
    sockets.add(socket);
    socket.once("close", () => {
      sockets.delete(socket);
      const left = (open.get(machine) ?? 1) - 1;
      if (left === 0) open.delete(machine);
      else open.set(machine, left);
    });
    const serve = lead(kind, socket, machine).catch((error: unknown) => {
      socket.destroy();
      // The client left or was too slow, or there is nobody to reach: that is said by the end of its connection.
      if (!(error instanceof NotReached) && !isEnd(error)) throw error;
    });
    background(serve, "leading a machine's connection to a name");
  };

  const lead = async (kind: Kind, socket: Socket, machine: string): Promise<void> => {
    const left = new AbortController();
    socket.once("close", () => left.abort(new Left()));
    const within = (ms: number) => AbortSignal.any([left.signal, ended.signal, AbortSignal.timeout(ms)]);
    const name = await askedName(kind, socket, within(HELLO_MS));
    const port = outside[kind];
    const rules = options.rulesOf(machine);
    if (name === undefined || rules === undefined || !isNamed(rules, name)) {
      options.onRefused(machine, { name, port });
      socket.end(ANSWERS[kind]);
      socket.setTimeout(HELLO_MS, () => socket.destroy()).resume();
      return;
    }
    const upstream = await options.reach(name, port, within(REACH_MS));
    upstream.on("error", () => upstream.destroy());
    const close = () => upstream.destroy();
    ended.signal.addEventListener("abort", close, { once: true });
    const nothing = Buffer.alloc(0);
    openTunnel({
      ...{ client: socket, upstream, fromClient: nothing, fromUpstream: nothing },
      ...{ idleMs: IDLE_MS, stallMs: STALL_MS, reset: true, move: pipe },
      onClientData() {},
      onMoved() {},
      onClose: () => ended.signal.removeEventListener("abort", close),
    });
  };

  const http = await listening(options.address, take("http"));
  const tls = await listening(options.address, take("tls")).catch(async (error: unknown) => {
    http.close();
    throw error;
  });
  return {
    ports: { http: portOf(http), tls: portOf(tls) },
    async close() {
      ended.abort(new Left());
      const closed = [http, tls].map((server) => new Promise<void>((resolve) => server.close(() => resolve())));
      for (const socket of sockets) socket.destroy();
      await Promise.all(closed);
    },
  };
}

/** One side of a connection is gone. */
class Left extends Error {}

function isEnd(error: unknown): boolean {
  if (error instanceof Left || error instanceof ProxyRefusal) return true;
  return error instanceof Error && error.name === "TimeoutError";
}

/** Returns the name that a connection asks for. Undefined when it names none, or is not what it should be. */
async function askedName(kind: Kind, socket: Socket, signal: AbortSignal): Promise<string | undefined> {
  if (kind === "tls") {
    const hello = await readStart(socket, readClientHello, signal);
    return hello.kind === "hello" ? hello.serverName : undefined;
  }
  const head = await readStart(socket, readHost, signal);
  return head.kind === "host" ? head.name : undefined;
}

async function listening(address: string, take: (socket: Socket) => void): Promise<Server> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, take);
  server.listen(0, address);
  await once(server, "listening");
  // Accepting fails while the process has no descriptors left, and works again later.
  return server.on("error", () => {});
}

function portOf(server: Server): number {
  const at = server.address();
  return typeof at === "object" && at !== null ? at.port : 0;
}
