/** Carries one TCP connection: finds a machine for it, waking one if necessary, and connects the two sockets. */
import type { Socket } from "node:net";
import type { Shares } from "@hibernaut/connections";
import {
  type AccessEntry,
  type ClientEnd,
  type Destination,
  type Lease,
  type LeaseProvider,
  type LeaseStart,
  ProxyRefusal,
  type RequestHead,
  unservedEntry,
} from "../contract.ts";
import { openLink } from "../hosts/tcp-link.ts";
import { connect } from "../http/connect.ts";
import type { Limits } from "../http/limits.ts";
import { MOVED, mayHelpElsewhere, tooManyConnections, toProxyRefusal, unreachableMachine } from "../http/refusals.ts";
import { openTunnel, type Tunnelled } from "../http/tunnel.ts";
import { Intake } from "../intake.ts";
import { type Origin, proxyHeader } from "../proxy-protocol.ts";
import { numberOf } from "./ports.ts";
import { HIGH_WATER_BYTES, pipe, splice } from "./splice.ts";

/**
 * A connection may be silent for days, as in a pool, so no time limit ends it unless bytes wait. The kernel asks this often
 * whether a silent client is still there.
 */
const KEEP_ALIVE_MS = 60_000;
/** How much a client may send before its machine is awake; the rest waits in the kernel. */
const AHEAD_BYTES = 64 * 1024;

export interface CarryOptions {
  client: Socket;
  app: string;
  /** Of the proxy, or of the app's own address, as `TcpPort` has it. */
  port: number;
  /** Where the client's connection comes from, and where it went. */
  origin: Origin;
  /** The hostname that the client named over TLS; empty if none. */
  serverName: string;
  /** Where the connection goes, if another host has decided that. */
  to?: Destination;
  /** Whether the client is a machine that may sleep: it cannot say then whether it is still there. */
  maySleep: boolean;
  /** What to tell of the connection if the client is a worker. */
  from?: ClientEnd | undefined;
  /** Breaks the client's connection off, so that what is cut short does not look whole. `error`: no machine took it. */
  cut(error?: unknown): void;
  leases: Pick<
    LeaseProvider,
    "leaseNow" | "waitForLease" | "afterMove" | "appOfAddress" | "machineAt" | "connectedFrom"
  >;
  limits: Pick<
    Limits,
    "connectAttemptMs" | "connectPauseMs" | "findMachineMs" | "peerConnectMs" | "tries" | "tunnelStallMs"
  >;
  /** The connection is being given to this machine, of another host if that is given. Returns what to call when that is over. */
  onMachine(machineId: string, host: string | undefined): () => void;
  /** How many connections to machines there may be, by app. */
  machines: Shares;
  /** The client has sent something for the app. */
  onClientData?(): void;
  /** A machine has taken the connection. */
  onConnected?(wake: LeaseStart): void;
  onAccess(entry: AccessEntry): void;
}

/** Resolves when the connection is over. Never rejects: a client of TCP can only be cut off, and the log says why. */
export async function carry(options: CarryOptions): Promise<void> {
  const { cut, onAccess } = options;
  const began = performance.now();
  const entry = entryOf(options, options.app);
  const over = await exchange(options, entry.requestId, began).catch((error: unknown) => {
    cut(error);
    return { error: toProxyRefusal(error).code };
  });
  onAccess({ ...entry, ...over, durationMs: performance.now() - began });
}

/** Returns the line of the access log for a connection of which nothing else is known. */
export function entryOf(
  { port, origin, serverName }: Pick<CarryOptions, "port" | "origin" | "serverName">,
  app: string | undefined,
): AccessEntry {
  const { address: clientAddress } = origin.source;
  return unservedEntry({ method: "TCP", host: serverName, target: `:${numberOf(port)}`, clientAddress, appName: app });
}

async function exchange(options: CarryOptions, requestId: string, came: number) {
  const { client, app, origin, cut, leases, machines, limits, maySleep, onMachine, onClientData } = options;
  const { tunnelStallMs: stallMs } = limits;
  const ahead = readAhead(client);
  const gone = new AbortController();
  const leave = () => gone.abort(new ProxyRefusal(499, "client_gone", "The client left."));
  client.once("close", leave);
  const signal = AbortSignal.any([gone.signal, AbortSignal.timeout(limits.findMachineMs)]);
  for (let head = headOf(options, requestId), tries = 1; ; tries += 1) {
    const lease = leases.leaseNow(app, head) ?? (await leases.waitForLease(app, head, signal));
    const { machineId, peer } = lease;
    const ended = onMachine(machineId, peer?.host);
    const intake = new Intake();
    const counted = machines.take(app);
    try {
      if (!counted) throw tooManyConnections();
      const upstream = await (peer === undefined
        ? reach(lease, intake, signal, limits)
        : openLink(lease, peer, options, { limits, signal }));
      if (!(upstream instanceof ProxyRefusal)) {
        // The client may have left in the very moment in which the machine answered.
        if (signal.aborted) upstream.destroy();
        signal.throwIfAborted();
        client.off("close", leave);
        options.onConnected?.(lease.wake);
        if (lease.proxyProtocol !== undefined) upstream.write(proxyHeader(lease.proxyProtocol, origin));
        return {
          ...(await tunnel({
            client,
            upstream,
            intake,
            lease,
            cut,
            stallMs,
            fromClient: ahead(),
            maySleep,
            onClientData,
            from: options.from,
          })),
          wake: lease.wake,
          machineId,
        };
      }
      if (tries >= limits.tries || (peer !== undefined && !mayHelpElsewhere(upstream))) throw upstream;
      if (upstream.code === MOVED) await leases.afterMove?.(lease, signal);
      else head = { ...head, tried: [...head.tried, machineId], since: came };
    } finally {
      if (counted) machines.give(app);
      ended();
      lease.release({});
    }
  }
}

/** Connects to a machine of this host. */
async function reach(
  lease: Lease,
  intake: Intake,
  signal: AbortSignal,
  limits: CarryOptions["limits"],
): Promise<Socket | ProxyRefusal> {
  const { address, port, connectDeadline: deadline } = lease;
  const more = { onread: intake.onread, highWaterMark: HIGH_WATER_BYTES };
  return connect({ address, port, deadline, signal, limits, more }).catch((error: unknown): ProxyRefusal => {
    signal.throwIfAborted();
    return unreachableMachine(lease, error);
  });
}

/** Reads what the client sends, up to a limit, because only a socket that is read notices that its client left. */
function readAhead(client: Socket): () => Buffer {
  const pieces: Buffer[] = [];
  let size = 0;
  const keep = (piece: Buffer) => {
    pieces.push(piece);
    size += piece.length;
    if (size >= AHEAD_BYTES) client.pause();
  };
  client.on("data", keep).resume();
  return () => {
    client.off("data", keep).pause();
    return Buffer.concat(pieces);
  };
}

interface Ends {
  client: Socket;
  upstream: Socket;
  lease: Lease;
  fromClient: Buffer;
  intake: Intake;
  stallMs: number;
  cut(): void;
  maySleep: boolean;
  onClientData: CarryOptions["onClientData"];
  from: CarryOptions["from"];
}

function tunnel({
  client,
  upstream,
  intake,
  lease,
  fromClient,
  stallMs,
  cut,
  maySleep,
  onClientData,
  from,
}: Ends): Promise<Tunnelled> {
  if (fromClient.length > 0) onClientData?.();
  lease.upgraded?.();
  if (!maySleep) client.setKeepAlive(true, KEEP_ALIVE_MS);
  upstream.on("error", () => {});
  return new Promise((resolve) => {
    openTunnel({
      ...{ client, upstream, fromClient, fromUpstream: Buffer.alloc(0), idleMs: 0, stallMs, reset: true },
      cutClient: cut,
      // Those of another host come out of TLS, in buffers of their own.
      move: lease.peer === undefined ? splice(intake) : pipe,
      onClientData: () => {
        onClientData?.();
        lease.wanted?.();
      },
      onQuiet: (quiet) => {
        lease.quiet?.(quiet);
        from?.quiet(quiet);
      },
      onMoved: (bytesIn, bytesOut) => {
        lease.moved?.(bytesIn, bytesOut);
        if (bytesOut > 0) from?.answered();
      },
      onClose: resolve,
    });
    // To a worker, the end is as much worth as a word.
    upstream.once("end", () => from?.answered());
    // Its end was read ahead, and no pipe will see it.
    if (client.readableEnded) upstream.end();
  });
}

function headOf({ client, port, origin, serverName, to }: CarryOptions, requestId: string): RequestHead {
  return {
    method: "TCP",
    target: `:${numberOf(port)}`,
    host: serverName,
    httpVersion: "1.1",
    fields: [],
    clientAddress: origin.source.address,
    secure: false,
    requestId,
    connection: client,
    tried: [],
    tcpPort: port,
    to,
  };
}
