/** What has to be known of a TCP connection before it gets a machine: who the client is, and which app it wants. */
import type { Socket } from "node:net";
import { ProxyRefusal } from "../contract.ts";
import type { Limits } from "../http/limits.ts";
import { plainAddress, type Trust } from "../http/trust.ts";
import type { Origin } from "../proxy-protocol.ts";
import { type Accepted, acceptTls, type TlsOptions, TlsRefusal } from "./accept-tls.ts";
import { type PortApps, plainOwner } from "./ports.ts";
import { readBalancersHeader, readStart } from "./read-start.ts";

export interface ArrivalOptions extends Omit<TlsOptions, "apps" | "signal"> {
  /** Load balancers whose connections begin with a header of the PROXY protocol. */
  balancers: Trust;
  limits: Pick<Limits, "handshakeMs" | "lingerMs">;
}

/** A connection that may be given to a machine. */
interface Arrival extends Accepted {
  origin: Origin;
}

/** What is known of a connection that comes to nothing. */
export interface Failure {
  code: string;
  origin: Origin;
  serverName: string;
  /** A balancer only looked whether the port is open. */
  looked: boolean;
}

/** Returns the two ends of a connection. */
export function originOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): Origin {
  return {
    source: { address: plainAddress(remoteAddress ?? ""), port: remotePort ?? 0 },
    destination: { address: plainAddress(localAddress ?? ""), port: localPort ?? 0 },
  };
}

/** Whether nothing has to be read before the connection gets a machine, which is the usual case. Returns its app. */
export function arrivedAt(raw: Socket, apps: PortApps, { balancers }: ArrivalOptions): string | undefined {
  return balancers.has(plainAddress(raw.remoteAddress ?? "")) ? undefined : plainOwner(apps);
}

/** Reads what the connection begins with. Never rejects. A connection that comes to nothing is told so, and ended. */
export async function arrive(raw: Socket, apps: PortApps, options: ArrivalOptions): Promise<Arrival | Failure> {
  const { balancers, limits } = options;
  const late = new AbortController();
  const timer = setTimeout(
    () => late.abort(new ProxyRefusal(408, "request_timeout", "The connection did not begin in time.")),
    limits.handshakeMs,
  );
  let origin = originOf(raw);
  let looked = false;
  try {
    if (balancers.has(origin.source.address)) {
      const header = await readBalancersHeader(raw, late.signal);
      origin = header.origin ?? origin;
      looked = header.local;
      // A check of the balancer's own must not wake a machine.
      if (header.local) await readStart(raw, something, late.signal);
      looked = false;
    }
    const app = plainOwner(apps);
    if (app !== undefined) return { client: raw, app, origin, serverName: "" };
    return { ...(await acceptTls(raw, { ...options, apps, signal: late.signal })), origin };
  } catch (error) {
    const { lastWords, serverName } = error instanceof TlsRefusal ? error : { lastWords: undefined, serverName: "" };
    end(raw, lastWords, limits.lingerMs);
    return { code: error instanceof ProxyRefusal ? error.code : "internal", origin, serverName, looked };
  } finally {
    clearTimeout(timer);
  }
}

function something(bytes: Buffer): { kind: "more" | "something" } {
  return { kind: bytes.length > 0 ? "something" : "more" };
}

/** Bytes that nobody reads would make the kernel reset the connection, and the client would not see the last words. */
function end(raw: Socket, lastWords: Buffer | undefined, lingerMs: number): void {
  if (lastWords === undefined || raw.destroyed) return void raw.destroy();
  raw.end(lastWords);
  raw.resume();
  const timer = setTimeout(() => raw.destroy(), lingerMs);
  raw.once("end", () => raw.destroySoon()).once("close", () => clearTimeout(timer));
}
