/** Machines of two apps behind a real engine with a real broker: each is a server on loopback that says who it is. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import type { ServiceConfig } from "@hibernaut/domain/service-config";
import { createProxyServer, type ProxyServer } from "../../src/http/server.ts";
import { LeaseBroker } from "../../src/lease-broker.ts";
import { type TableMachine, toWire } from "../../src/messages.ts";
import { policyOf } from "../../src/service-policy.ts";

/** What a machine answers to a whole head: an answer as bytes. By default, its name. */
export type Says = (head: string) => string;

interface MachineOptions {
  app: string;
  id: string;
  name: string;
  service?: Partial<ServiceConfig>;
  /** Whether it has a second port, which says the name and `-admin`. */
  admin?: boolean;
  says?: Says;
}

export class NamesWorld {
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #rows: TableMachine[] = [];
  /** Ports of machines, by `<name>` and `<name>-admin`. */
  readonly ports = new Map<string, number>();
  #proxy: ProxyServer | undefined;
  /** The heads of all requests that machines got, by the name of the machine. */
  readonly heads: [name: string, head: string][] = [];
  port = 0;

  /** Adds a machine that runs. */
  async add({ app, id, name, service = {}, admin = false, says }: MachineOptions): Promise<void> {
    const port = await this.#serve(name, says);
    const services: ServiceConfig[] = [{ protocol: "http", internal_port: port, ...service }];
    if (admin) services.push({ internal_port: await this.#serve(`${name}-admin`), ...service });
    const policy = policyOf({ image: "x", services });
    this.#rows.push({
      ...{ id, app, name, state: "running", address: "127.0.0.1", lastBoot: null, healthy: true, reason: null },
      ...{ crash: null, unreachable: null, cordoned: false, resting: false },
      policy: policy === undefined ? null : toWire(policy),
    });
  }

  /** Starts the proxy in front of the machines that were added. */
  async start(hostnames: Record<string, string> = {}): Promise<void> {
    const broker = new LeaseBroker({
      ...{ maxHeld: 100, holdTimeoutMs: 1000, connectTimeoutMs: 1000 },
      link: { send() {} },
    });
    broker.receive({
      ...{ kind: "table", machines: this.#rows, hostnames, suffixes: ["localhost", "apps.example.org"] },
      ...{ connectionsSurvive: false, draining: false, challenges: {} },
    });
    this.#proxy = createProxyServer({ leases: broker, limits: { sweepMs: 50 } });
    ({ port: this.port } = await this.#proxy.listen({ host: "127.0.0.1", port: 0 }));
  }

  async stop(): Promise<void> {
    await this.#proxy?.close(0);
    for (const socket of this.#sockets) socket.destroy();
    for (const server of this.#servers) server.close();
  }

  async #serve(name: string, says: Says = () => said(name)): Promise<number> {
    const server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket)).on("error", () => {});
      let text = "";
      socket.on("data", (chunk) => {
        text += chunk.toString("latin1");
        for (let end = text.indexOf("\r\n\r\n"); end !== -1; end = text.indexOf("\r\n\r\n")) {
          const head = text.slice(0, end + 2);
          text = text.slice(end + 4);
          this.heads.push([name, head]);
          socket.write(Buffer.from(says(head), "latin1"));
        }
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    this.#servers.push(server);
    const { port } = server.address() as AddressInfo;
    this.ports.set(name, port);
    return port;
  }
}

/** An answer with this body. */
export function said(body: string, fields = ""): string {
  return `HTTP/1.1 200 OK\r\n${fields}Content-Length: ${Buffer.byteLength(body, "latin1")}\r\n\r\n${body}`;
}

export interface Asked {
  /** `200 anna`: the status, and what the machine said, or the code of a refusal. */
  outcome: string;
  /** All that came. */
  text: string;
}

/** Sends the bytes on a connection of their own, and reads until its end: the request has to say `Connection: close`. */
export async function askRaw(port: number, request: string): Promise<Asked> {
  const socket = connect({ port, host: "127.0.0.1" });
  let text = "";
  socket.on("data", (chunk) => (text += chunk.toString("latin1")));
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.write(Buffer.from(request, "latin1"));
  await once(socket, "close");
  const final = text.slice(text.search(/HTTP\/1\.1 [2-5]/));
  const status = /^HTTP\/1\.1 (\d+)/.exec(final)?.[1] ?? "nothing";
  const body = final.slice(final.indexOf("\r\n\r\n") + 4);
  const code = /^\{"error":"(\w+)"/.exec(body)?.[1];
  return { outcome: `${status} ${code ?? (status === "200" ? body : "")}`.trim(), text };
}
