/** Carries one TCP connection: finds a machine for it, waking one if necessary, and connects the two sockets. */
import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import { type AccessEntry, type Lease, type LeaseProvider, ProxyRefusal, type RequestHead } from "../contract.ts";
import { connect } from "../http/connect.ts";
import type { Limits } from "../http/limits.ts";
import { toProxyRefusal, unreachableMachine } from "../http/refusals.ts";
import { openTunnel } from "../http/tunnel.ts";

/**
 * A connection may be silent for days, as in a pool, so no time limit ends it. The kernel asks this often whether a silent
 * client is still there.
 */
const KEEP_ALIVE_MS = 60_000;
/** How much a client may send before its machine is awake; the rest waits in the kernel. */
const AHEAD_BYTES = 64 * 1024;

export interface CarryOptions {
  client: Socket;
  app: string;
  port: number;
  leases: Pick<LeaseProvider, "leaseNow" | "waitForLease">;
  limits: Pick<Limits, "connectAttemptMs" | "connectPauseMs" | "findMachineMs" | "tries">;
  /** The connection is being given to this machine. Returns what to call when that is over. */
  onMachine(machineId: string): () => void;
  onAccess(entry: AccessEntry): void;
}

/** Resolves when the connection is over. Never rejects: a client of TCP can only be cut off, and the log says why. */
export async function carry(options: CarryOptions): Promise<void> {
  const { client, app, port, onAccess } = options;
  const began = performance.now();
  const entry = {
    time: Date.now(),
    requestId: randomUUID(),
    method: "TCP",
    host: "",
    target: `:${port}`,
    httpVersion: "",
    clientAddress: client.remoteAddress ?? "",
    status: undefined,
    appName: app,
  };
  const over = await exchange(options, entry.requestId).catch((error: unknown) => {
    client.resetAndDestroy();
    return { ...NOTHING, error: toProxyRefusal(error).code };
  });
  onAccess({ ...entry, ...over, durationMs: performance.now() - began });
}

type Over = Pick<AccessEntry, "bytesIn" | "bytesOut" | "error" | "wake" | "machineId">;
const NOTHING: Over = { bytesIn: 0, bytesOut: 0, error: undefined, wake: undefined, machineId: undefined };

async function exchange({ client, app, port, leases, limits, onMachine }: CarryOptions, requestId: string) {
  const ahead = readAhead(client);
  const gone = new AbortController();
  const leave = () => gone.abort(new ProxyRefusal(499, "client_gone", "The client left."));
  client.once("close", leave);
  const signal = AbortSignal.any([gone.signal, AbortSignal.timeout(limits.findMachineMs)]);
  for (let head = headOf(client, port, requestId); ; ) {
    const lease = leases.leaseNow(app, head) ?? (await leases.waitForLease(app, head, signal));
    const { wake, machineId, address, connectDeadline: deadline } = lease;
    const ended = onMachine(machineId);
    try {
      const upstream = await connect({ address, port: lease.port, deadline, signal, limits }).catch(
        (error: unknown): ProxyRefusal => {
          signal.throwIfAborted();
          return unreachableMachine(lease, error);
        },
      );
      if (!(upstream instanceof ProxyRefusal)) {
        // The client may have left in the very moment in which the machine answered.
        if (signal.aborted) upstream.destroy();
        signal.throwIfAborted();
        client.off("close", leave);
        return { ...(await tunnel({ client, upstream, lease, fromClient: ahead() })), wake, machineId };
      }
      head = { ...head, tried: [...head.tried, machineId] };
      if (head.tried.length >= limits.tries) throw upstream;
    } finally {
      ended();
      lease.release({});
    }
  }
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
  client.on("data", keep);
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
}

function tunnel({ client, upstream, lease, fromClient }: Ends): Promise<Over> {
  lease.upgraded?.();
  client.setKeepAlive(true, KEEP_ALIVE_MS);
  upstream.on("error", () => {});
  return new Promise((resolve) => {
    openTunnel({
      ...{ client, upstream, fromClient, fromUpstream: Buffer.alloc(0), idleMs: 0, reset: true },
      onClientData: () => lease.wanted?.(),
      onQuiet: (quiet) => lease.quiet?.(quiet),
      onMoved: (bytesIn, bytesOut) => lease.moved?.(bytesIn, bytesOut),
      onClose: ({ bytesIn, bytesOut, error }) => resolve({ ...NOTHING, bytesIn, bytesOut, error }),
    });
    // Its end was read ahead, and no pipe will see it.
    if (client.readableEnded) upstream.end();
  });
}

function headOf(client: Socket, tcpPort: number, requestId: string): RequestHead {
  return {
    method: "TCP",
    target: `:${tcpPort}`,
    host: "",
    httpVersion: "1.1",
    fields: [],
    clientAddress: client.remoteAddress ?? "",
    secure: false,
    requestId,
    connection: client,
    tried: [],
    tcpPort,
  };
}
