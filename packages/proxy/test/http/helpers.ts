/** A proxy, apps and clients on loopback; `rig()` looks that nothing stays open when its test has finished. */
import { once } from "node:events";
import { createServer as createHttpServer, type Server as HttpServer, type RequestListener } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { expect, onTestFinished } from "vitest";
import type { AccessEntry, Lease, LeaseOutcome, LeaseProvider, RequestHead } from "../../src/contract.ts";
import { createProxyServer, type ProxyOptions, type ProxyServer } from "../../src/http/server.ts";

/** Only a fault reaches it. */
const PATIENCE_MS = 8000;

/** Waits until `condition` holds; it is looked at between events. */
export async function until(condition: () => boolean, what: string, patienceMs = PATIENCE_MS): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`In vain waited for: ${what}.`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** An app: what listens on a port, and how many connections it has and had. */
export interface App {
  port: number;
  open: Set<Socket>;
  accepted: number;
  stop(): Promise<void>;
}

/** Lets a server listen as an app. It is stopped when the test has finished. */
export async function serve(server: Server | HttpServer, port: number): Promise<App> {
  const app: App = { port: 0, open: new Set(), accepted: 0, stop: async () => {} };
  server.on("connection", (socket: Socket) => {
    app.accepted += 1;
    app.open.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => app.open.delete(socket));
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  app.port = (server.address() as AddressInfo).port;
  app.stop = async () => {
    if (!server.listening) return;
    const closed = once(server, "close");
    server.close();
    for (const socket of app.open) socket.destroy();
    await closed;
  };
  onTestFinished(app.stop);
  return app;
}

/** An app on node:http. */
export function httpApp(listener: RequestListener, port = 0): Promise<App> {
  const server = createHttpServer({ keepAliveTimeout: 0, requestTimeout: 0 }, listener);
  return serve(server, port);
}

/** An app that answers with bytes. With `allowHalfOpen` it decides itself when it ends. */
export function rawApp(onConnection: (socket: Socket) => void, { allowHalfOpen = false } = {}): Promise<App> {
  return serve(createServer({ allowHalfOpen, noDelay: true }, onConnection), 0);
}

/** An app that acts once it has the head of a connection's first request; `text` is all that has come. */
export function headApp(act: (socket: Socket, text: string) => unknown, options = {}): Promise<App> {
  return rawApp((socket) => {
    let text = "";
    const read = (chunk: Buffer) => {
      text += chunk.toString("latin1");
      if (!text.includes("\r\n\r\n")) return;
      socket.off("data", read);
      act(socket, text);
    };
    socket.on("data", read);
  }, options);
}

export const SWITCHED = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";

/** An app that switches to a protocol which gives back every byte, and ends when the other side ends. */
export function echoApp(greeting = ""): Promise<App> {
  const act = (socket: Socket, text: string) => {
    socket.write(SWITCHED + greeting + text.slice(text.indexOf("\r\n\r\n") + 4), "latin1");
    socket.pipe(socket);
  };
  return headApp(act, { allowHalfOpen: true });
}

/** A client that sends bytes and keeps what comes. */
export class RawClient {
  readonly socket: Socket;
  text = "";
  /** "end" after a FIN, "reset" after a RST, undefined while open. */
  ending: "end" | "reset" | undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk) => {
      this.text += chunk.toString("latin1");
    });
    socket.on("end", () => {
      this.ending ??= "end";
    });
    socket.on("error", () => {
      this.ending = "reset";
    });
  }

  send(bytes: string | Buffer): this {
    this.socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
    return this;
  }

  /** Sends byte by byte, each in its own packet, until the other side ends: it may have refused what has come so far. */
  async sendSlowly(bytes: string | Buffer): Promise<void> {
    for (const byte of Buffer.from(bytes as string, "latin1")) {
      if (this.ending !== undefined) return;
      this.send(Buffer.from([byte]));
      await turn();
    }
  }

  /** Waits until `part` has come, and returns all that has. */
  async sees(part: string): Promise<string> {
    await until(
      () => this.text.includes(part),
      `${JSON.stringify(part)} in ${JSON.stringify(this.text.slice(0, 2000))}`,
    );
    return this.text;
  }

  async ends(): Promise<string> {
    await until(() => this.ending !== undefined, `the end of ${JSON.stringify(this.text.slice(0, 2000))}`);
    return this.text;
  }
}

export interface Rig {
  proxy: ProxyServer;
  port: number;
  log: AccessEntry[];
  outcomes: LeaseOutcome[];
  heads: RequestHead[];
  faults: unknown[];
  client(): Promise<RawClient>;
  /** Sends one request on its own connection and returns all that comes until the proxy closes it. */
  ask(request: string): Promise<string>;
}

export interface RigOptions extends Omit<ProxyOptions, "leases"> {
  /** The app of all requests. */
  app?: App;
  /** Decides instead which lease a request gets. Leases from `lease()` are counted too. */
  leaseFor?: (request: RequestHead, signal: AbortSignal, lease: (over?: Partial<Lease>) => Lease) => Promise<Lease>;
  /** Decides where a request goes that an app sends on. */
  replayTo?: LeaseProvider["replayTo"];
}

/** A running proxy; when the test has finished nothing may be left open, and every lease must be back. */
export async function rig({ app, leaseFor, replayTo = noReplays, ...options }: RigOptions): Promise<Rig> {
  const [log, outcomes, heads, faults]: [AccessEntry[], LeaseOutcome[], RequestHead[], unknown[]] = [[], [], [], []];
  let leased = 0;
  const lease = (over: Partial<Lease> = {}): Lease => {
    leased += 1;
    let released = false;
    return {
      address: "127.0.0.1",
      port: app?.port ?? 0,
      machineId: "m1",
      appName: "shop",
      wake: { kind: "running", durationMs: 0 },
      connectDeadline: performance.now() + 100,
      release(outcome) {
        expect(released, "a lease is released once").toBe(false);
        released = true;
        outcomes.push(outcome);
      },
      ...over,
    };
  };
  const leases: LeaseProvider = {
    route: () => "shop",
    leaseNow(_app, request) {
      heads.push({ ...request, tried: [...request.tried] });
      return leaseFor === undefined ? lease() : undefined;
    },
    async waitForLease(_app, request, signal) {
      if (leaseFor === undefined) throw new Error("Every request got a lease at once.");
      return leaseFor(request, signal, lease);
    },
    replayTo,
  };
  const proxy = createProxyServer({
    onAccess: (entry) => log.push(entry),
    onFault: (fault) => faults.push(fault),
    ...options,
    limits: { sweepMs: 10, ...options.limits },
    leases,
  });
  const { port } = await proxy.listen({ host: "127.0.0.1", port: 0 });
  const clients: RawClient[] = [];
  onTestFinished(async () => {
    for (const { socket } of clients) socket.destroy();
    await until(() => proxy.stats().clientConnections === 0, "the proxy to let go of all clients");
    await until(() => proxy.stats().requests === 0 && outcomes.length === leased, "all requests to end");
    await proxy.close(0);
    await until(() => proxy.stats().machineConnections === 0, "the proxy to let go of all machines");
    if (app !== undefined) await until(() => app.open.size === 0, "the app to lose all connections");
  });
  const client = async () => {
    const socket = connect({ host: "127.0.0.1", port, noDelay: true, allowHalfOpen: true });
    await once(socket, "connect");
    const raw = new RawClient(socket);
    clients.push(raw);
    return raw;
  };
  const ask = async (request: string) => {
    const raw = (await client()).send(request);
    await raw.ends();
    raw.socket.destroy();
    return raw.text;
  };
  return { proxy, port, log, outcomes, heads, faults, client, ask };
}

function noReplays(): never {
  throw new Error("No app was expected to send a request on.");
}

/** For proxies that no request reaches. */
export const noLeases: LeaseProvider = {
  route() {
    throw new Error("No request was expected.");
  },
  leaseNow: () => undefined,
  waitForLease: () => Promise.reject(new Error("No request was expected.")),
  replayTo: noReplays,
};

/** The status of each response in the text. */
export function statuses(text: string): number[] {
  return [...text.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map((match) => Number(match[1]));
}

/** Head and body of the one response in the text. */
export function parsed(text: string): { status: number; headers: Map<string, string>; body: string } {
  const end = text.indexOf("\r\n\r\n");
  const [line = "", ...lines] = text.slice(0, end).split("\r\n");
  const headers = new Map(
    lines.map((each) => [each.slice(0, each.indexOf(":")).toLowerCase(), each.slice(each.indexOf(":") + 2)]),
  );
  return { status: Number(line.split(" ")[1]), headers, body: text.slice(end + 4) };
}

export const CLOSE = "Host: shop.test\r\nConnection: close\r\n\r\n";
export const KEEP = "Host: shop.test\r\n\r\n";
export const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
