/** TCP ports of a proxy, the apps behind them, and clients: all on loopback, and gone when the test has finished. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";
import type { ConnectionBudget } from "@hibernaut/connections";
import type { TlsHandler } from "@hibernaut/domain/tcp-handlers";
import { abortable } from "@hibernaut/lib/async";
import { onTestFinished } from "vitest";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { budgetOf } from "../../../platform/test/helpers/connections.ts";
import { type AccessEntry, type Lease, ProxyRefusal, type RequestHead } from "../../src/contract.ts";
import { Certificates } from "../../src/http/certificates.ts";
import { DEFAULT_LIMITS, type Limits } from "../../src/http/limits.ts";
import { Trust } from "../../src/http/trust.ts";
import { placesOf, TcpFronts, type TcpFrontsOptions } from "../../src/tcp/fronts.ts";
import { until } from "../http/helpers.ts";

const HOST = "127.0.0.1";

export interface RigApp {
  tls?: TlsHandler;
  hostnames?: readonly string[];
  proxyProtocol?: Lease["proxyProtocol"];
  /** Where the app is; by default, the rig runs it. */
  port?: number;
  /** What the app does with a connection: by default it answers each piece with its name and the piece. */
  serve?(socket: Socket): void;
}

interface RigOptions {
  apps: Record<string, RigApp>;
  /** The directory of certificates, if an app needs one. */
  folder?: string;
  balancers?: readonly string[];
  limits?: Partial<Limits>;
  connections?: ConnectionBudget;
  /** The addresses of machines, by app. */
  machines?: Record<string, readonly string[]>;
  /** Decides which lease a connection gets, or refuses it. Undefined: it waits for what `waitFor` brings. */
  leaseNow?(head: RequestHead, lease: () => Lease): Lease | undefined;
  waitFor?: Promise<Lease>;
  /** Further options of the ports. */
  more?: Partial<TcpFrontsOptions>;
}

export interface TcpRig {
  port: number;
  fronts: TcpFronts;
  log: AccessEntry[];
  heads: RequestHead[];
  /** A lease of the first app. */
  lease(): Lease;
  released(): number;
  /** Connects, and ends TLS. Rejects if the handshake fails. */
  dial(options?: ConnectionOptions): Promise<TLSSocket>;
}

export async function tcpRig({
  apps,
  folder = "",
  balancers = [],
  limits: some,
  connections = budgetOf(),
  machines = {},
  leaseNow = (_head, lease) => lease(),
  waitFor = Promise.reject(new ProxyRefusal(500, "internal", "No connection was expected to wait.")),
  more = {},
}: RigOptions): Promise<TcpRig> {
  waitFor.catch(() => {});
  const [log, heads]: [AccessEntry[], RequestHead[]] = [[], []];
  let released = 0;
  const ports = new Map<string, number>();
  for (const [name, app] of Object.entries(apps)) ports.set(name, app.port ?? (await serve(name, app)));
  let opened: Promise<Certificates> | undefined;
  const certificates = () => {
    opened ??= Certificates.open({ folder }, (fault) => {
      throw fault;
    });
    return opened;
  };
  const leaseOf = (app: string): Lease => ({
    ...{ address: HOST, port: ports.get(app) ?? 0, machineId: `${app}-1`, appName: app },
    wake: { kind: "running", durationMs: 0 },
    connectDeadline: 0,
    proxyProtocol: apps[app]?.proxyProtocol,
    release: () => void (released += 1),
  });
  const fronts = new TcpFronts({
    isStranger: () => false,
    reusePort: false,
    limits: { ...DEFAULT_LIMITS, lingerMs: 200, ...some },
    balancers: new Trust(balancers),
    connections,
    appFor: (name) => Object.entries(apps).find(([, { hostnames = [] }]) => hostnames.includes(name))?.[0],
    certificates,
    leases: {
      leaseNow(app, head) {
        heads.push(head);
        return leaseNow(head, () => leaseOf(app));
      },
      machineAt: (address) =>
        Object.values(machines).some((all) => all.includes(address)) ? `machine ${address}` : undefined,
      appOfAddress: (address) => Object.keys(machines).find((app) => machines[app]?.includes(address)),
      waitForLease: (_app, _head, signal) => abortable(waitFor, signal),
    },
    onAccess: (entry) => void log.push(entry),
    log: {
      warn(_fields, message) {
        throw new Error(message);
      },
    },
    ...more,
  });
  const port = await freePort();
  fronts.update(
    placesOf(new Map([[port, new Map(Object.entries(apps).map(([name, { tls }]) => [name, tls]))]]), [HOST]),
  );
  await until(() => fronts.ports.length === 1, "the port to open");
  onTestFinished(() => fronts.close(0));
  const lease = () => leaseOf(Object.keys(apps)[0] ?? "");
  return { port, fronts, log, heads, lease, released: () => released, dial: (options) => dial(port, options) };
}

async function serve(name: string, { serve: act }: RigApp): Promise<number> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    socket.on("error", () => {}).on("close", () => open.delete(socket));
    if (act !== undefined) return act(socket);
    socket.on("data", (piece) => socket.write(`${name} ${String(piece)}`)).on("end", () => socket.end());
  }).listen(0, HOST);
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

function dial(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    // Half-open, which the types do not know.
    const more: object = { allowHalfOpen: true };
    const socket = connectTls({ host: HOST, port, rejectUnauthorized: false, ...more, ...options });
    onTestFinished(() => void socket.destroy());
    socket.once("secureConnect", () => resolve(socket)).once("error", reject);
  });
}

/** A connection without TLS. */
export async function plain(port: number): Promise<Socket> {
  const socket = connect({ host: HOST, port, allowHalfOpen: true });
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  return socket;
}

/** Sends a line, and returns what comes back. */
export async function say(socket: Socket, line: string | Buffer): Promise<string> {
  socket.write(line);
  return String((await once(socket, "data"))[0]);
}
