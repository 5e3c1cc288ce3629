/**
 * Where machines' connections to names end, for a moment: their first bytes say which name they are for, and if the
 * machine's rules allow that name, they are led there. The name is certain, as this host finds its address by itself: a
 * machine that names one and aims at another reaches the one that it names.
 */
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { type Egress, injectedFor, mayName, mayReach } from "@hibernaut/domain/egress";
import { background } from "@hibernaut/lib/background";
import { ProxyRefusal } from "../contract.ts";
import { openTunnel } from "../http/tunnel.ts";
import { ALERTS, alertRecord, readClientHello } from "../tcp/client-hello.ts";
import { readStart } from "../tcp/read-start.ts";
import { pipe } from "../tcp/splice.ts";
import { readHost } from "./asked-host.ts";
import type { OutwardAuthority } from "./authority.ts";
import type { Credentials } from "./credentials.ts";
import { intercept } from "./intercept.ts";
import { NotReached, type Reach } from "./reach.ts";

/** Open connections, each of which costs two descriptors. No machine takes its app's share, and no app the others'. */
const CONNECTIONS = { total: 4_096, perApp: 1_024, perMachine: 256 };
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

interface GateOptions {
  /** The address to listen on: the host's in the machines' network. */
  address: string;
  /** The machine with this address, with the rules that it has now. */
  machineAt(address: string): GatedMachine | undefined;
  reach: Reach;
  /** Called when a machine wants a name that it may not reach, or none. */
  onRefused(machineId: string, refused: { name: string | undefined; port: number }): void;
  /** What is added to requests. Absent: nothing is, and names that something should be added for are not reached over TLS. */
  injection?: Injection;
  /** Ports that names are reached at. Default: those of HTTP and TLS. */
  outside?: { http: number; tls: number };
}

/** What the gate needs to add something to requests. */
interface Injection {
  authority: Pick<OutwardAuthority, "contextFor">;
  /** Decrypts what rules have for a name. Throws when this host cannot. */
  unseal(sealed: string, app: string): Credentials;
  /** PEM of authorities that servers may have their certificates from. Default: those that Node trusts. */
  authorities?: readonly string[];
}

/** What the gate knows of a machine. */
export interface GatedMachine {
  id: string;
  app: string;
  address: string;
  egress?: Egress | undefined;
}

interface Gate {
  /** Where it listens. */
  ports: { http: number; tls: number };
  /** Cuts the connections of the machine at this address that its rules no longer allow, and of any earlier one there. */
  changed(machine: Pick<GatedMachine, "address">): void;
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

/** A connection of a machine. */
interface Led {
  socket: Socket;
  machineId: string;
  app: string;
  address: string;
  /** Undefined until it is known. */
  name: string | undefined;
  /** What is added to its requests, encrypted. */
  injected?: string;
}

/** Whether the machine that made the connection is still there, and may still have it. */
function isAllowed({ machineId, name, injected }: Led, machine: GatedMachine | undefined): boolean {
  if (machine?.id !== machineId) return false;
  // What was added holds no longer.
  if (injected !== undefined && (machine.egress === undefined || injectedFor(machine.egress, name ?? "") !== injected))
    return false;
  return machine.egress === undefined || (name !== undefined && mayName(machine.egress, name));
}

/** Starts listening at two free ports. Rejects with the system's error when it cannot. */
export async function openGate(options: GateOptions): Promise<Gate> {
  const open = new Set<Led>();
  const ended = new AbortController();
  const outside = options.outside ?? { http: 80, tls: 443 };
  const count = (counts: (one: Led) => boolean) => [...open].filter(counts).length;

  const take = (kind: Kind) => (socket: Socket) => {
    socket.on("error", () => socket.destroy());
    const machine = options.machineAt(socket.remoteAddress ?? "");
    const { id: machineId = "", app = "", address = "" } = machine ?? {};
    const isFull =
      open.size >= CONNECTIONS.total ||
      count((one) => one.app === app) >= CONNECTIONS.perApp ||
      count((one) => one.machineId === machineId) >= CONNECTIONS.perMachine;
    // A machine without rules has no business here: nothing leads it.
    if (machine?.egress === undefined || isFull) {
      socket.resetAndDestroy();
      return;
    }
    const led: Led = { socket, machineId, app, address, name: undefined };
    open.add(led);
    socket.once("close", () => open.delete(led));
    const serve = lead(kind, led).catch((error: unknown) => {
      socket.destroy();
      // The client left or was too slow, or there is nobody to reach: that is said by the end of its connection.
      if (!(error instanceof NotReached) && !isEnd(error)) throw error;
    });
    background(serve, "leading a machine's connection to a name");
  };

  const lead = async (kind: Kind, led: Led): Promise<void> => {
    const { socket, machineId, address } = led;
    const left = new AbortController();
    socket.once("close", () => left.abort(new Left()));
    const within = (ms: number) => AbortSignal.any([left.signal, ended.signal, AbortSignal.timeout(ms)]);
    led.name = (await askedName(kind, socket, within(HELLO_MS)))?.replace(/\.$/, "");
    const port = outside[kind];
    if (!isAllowed(led, options.machineAt(address))) {
      options.onRefused(machineId, { name: led.name, port });
      socket.end(ANSWERS[kind]);
      // Whatever it still says.
      const late = setTimeout(() => socket.destroy(), HELLO_MS);
      socket.once("close", () => clearTimeout(late)).resume();
      return;
    }
    const name = led.name ?? "";
    const rules = options.machineAt(address)?.egress;
    const may = (to: string) => rules === undefined || rules.closed || mayReach(rules, to);
    const sealed = rules && injectedFor(rules, name);
    if (kind === "tls" && sealed !== undefined) {
      const { injection } = options;
      if (injection === undefined) throw new NotReached(`nothing can be added to requests to ${name}`);
      const context = await injection.authority.contextFor(name, {
        app: led.app,
        ofMany: rules?.injected?.[name.toLowerCase()] === undefined,
      });
      if (options.machineAt(address)?.egress !== rules) throw new Left();
      intercept({
        ...{ client: socket, name, context, credentials: injection.unseal(sealed, led.app), signal: ended.signal },
        reach: (signal) => options.reach(name, port, AbortSignal.any([signal, AbortSignal.timeout(REACH_MS)]), may),
        ...(injection.authorities !== undefined && { authorities: injection.authorities }),
      });
      led.injected = sealed;
      return;
    }
    const upstream = await options.reach(name, port, within(REACH_MS), may);
    upstream.on("error", () => upstream.destroy());
    // The rules may have changed while the name was looked up.
    if (!isAllowed(led, options.machineAt(address))) {
      upstream.destroy();
      throw new Left();
    }
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
    changed({ address }) {
      const machine = options.machineAt(address);
      for (const led of open) if (led.address === address && !isAllowed(led, machine)) led.socket.resetAndDestroy();
    },
    async close() {
      ended.abort(new Left());
      const closed = [http, tls].map((server) => new Promise<void>((resolve) => server.close(() => resolve())));
      for (const { socket } of open) socket.destroy();
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
