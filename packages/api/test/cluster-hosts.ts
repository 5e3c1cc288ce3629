/** Several hosts in one process with their APIs, which reach each other over TLS. Only the hypervisors are fakes. */
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type TLSSocket } from "node:tls";
import { PeerClient } from "@hibernaut/cluster";
import { KEYS } from "@hibernaut/cluster/keys";
import { HibernautError } from "@hibernaut/domain/errors";
import type { Peers } from "../../cluster/src/cluster.ts";
import { Rate } from "../../cluster/src/moves/rate.ts";
import { type OpenedTemplates, openClusterTemplates } from "../../cluster/src/templates/open.ts";
import { startHosts, type TestHost } from "../../cluster/test/agreed/hosts.ts";
import { selfSigned } from "../../platform/test/helpers/self-signed.ts";
import { acceptPlain } from "../src/tls.ts";
import { createToken } from "../src/tokens.ts";
import { as, startApi, type TestApi } from "./helpers.ts";
import type { Reply } from "./openapi-check.ts";

export interface ApiHost extends TestApi {
  host: TestHost;
}

export interface ApiHosts {
  hosts: [ApiHost, ApiHost, ApiHost];
  /** A token that is valid on all of them. */
  token: string;
  /** Sends a request to a host. */
  ask(host: ApiHost, method: string, path: string, body?: unknown, headers?: object): Promise<Reply>;
  /** Creates a small machine of an app on a host, known to the cluster and running, and returns its id. */
  make(host: ApiHost, app: string, name: string): Promise<string>;
  /** Makes a machine known to the cluster, as its owner does. */
  claim(host: ApiHost, app: string, id: string, name: string): Promise<void>;
  /** Writes keys of the directory. */
  write(values: Record<string, object | null>): Promise<void>;
  /** Tells all hosts how a machine is, as its owner does. */
  publish(id: string, published: { state: string; route: object | null }): Promise<void>;
  /** A host's lease ends, or begins again. */
  setUp(name: string, up: boolean | { memoryMb: { total: number; free: number }; draining?: boolean }): Promise<void>;
  /** Cuts the connections of other hosts to this one. */
  hangUp(name: string): void;
  close(): Promise<void>;
}

const UP = { region: "local", memoryMb: { total: 8192, free: 4096 }, machines: 0, draining: false };

/** Starts hosts with their APIs. */
export async function startApiHosts(): Promise<ApiHosts> {
  await using open = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "hibernaut-peers-"));
  open.defer(() => rm(folder, { recursive: true, force: true }));
  const { cert, keyFile } = selfSigned(folder, "peer", ["peer"]);
  const key = readFileSync(keyFile, "utf8");
  const ports = new Map<string, number>();
  const peers: Peers = {
    target(name) {
      const port = ports.get(name);
      if (port === undefined) throw new HibernautError("host_unreachable", `Host ${name} is away.`, { host: name });
      return { host: "127.0.0.1", port, tls: { ca: cert, servername: "peer", ALPNProtocols: ["hib-api"] } };
    },
  };
  const running = await startHosts({ peers });
  open.defer(() => running.close());
  const hosts: ApiHost[] = [];
  const peerPorts = new Map<string, number>();
  const accepted = new Map<string, Set<TLSSocket>>();
  for (const host of running.hosts) {
    const { cluster, shared } = host;
    const client = new PeerClient({ peers, view: cluster.view, service: "api" });
    open.defer(() => client.close());
    const connections = new WeakMap<object, string>();
    const templates = await templatesOf(host, peerPorts, open);
    const api = await startApi(
      { cluster: { shared, view: cluster.view, client, connections, images: host.world.images, templates } },
      { place: { world: host.world, platform: host.platform } },
    );
    open.defer(() => api.close());
    const sockets = new Set<TLSSocket>();
    accepted.set(host.name, sockets);
    const port = createServer({ cert, key, ALPNProtocols: ["hib-api"] }, (socket) => {
      socket.on("error", () => {});
      sockets.add(socket);
      connections.set(socket, "peer");
      acceptPlain(api.api, socket);
    });
    await new Promise<void>((resolve) => {
      port.listen(0, "127.0.0.1", resolve);
    });
    open.defer(() => {
      port.close();
      for (const socket of sockets) socket.destroy();
    });
    ports.set(host.name, (port.address() as AddressInfo).port);
    hosts.push({ ...api, host });
  }
  const [first, second, third] = hosts;
  if (first === undefined || second === undefined || third === undefined) throw new Error("too few hosts");
  const { directory } = first.host.cluster;
  const write = async (values: Record<string, object | null>) => {
    const changes = Object.entries(values).map(([at, value]) => ({ key: at, value: value && JSON.stringify(value) }));
    const revision = await directory.transact([], changes);
    for (const { host } of hosts) await host.cluster.view.reached(revision ?? 0);
  };
  const setUp: ApiHosts["setUp"] = (name, up) =>
    write({ [KEYS.hosts + name]: up === false ? null : { ...UP, name, ...(typeof up === "object" && up) } });
  for (const { host } of hosts) await setUp(host.name, true);
  const { token } = await first.host.shared.write(({ tokens }) => createToken(tokens, "all"));
  for (const { host } of hosts) await host.shared.catchUp();
  const ask: ApiHosts["ask"] = async (host, method, path, body, headers = {}) => {
    const type = body === undefined ? {} : { "content-type": "application/json" };
    const content = body === undefined ? {} : { body: JSON.stringify(body) };
    const fields = { ...as(token).headers, ...type, ...headers };
    const response = await fetch(host.url + path, { method, headers: fields, ...content });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === "" ? undefined : JSON.parse(text) };
  };
  const claim: ApiHosts["claim"] = (owner, app, id, name) =>
    write({
      [KEYS.machines + id]: { app, name, host: owner.host.name, epoch: 1, address: "10.0.0.1" },
      [KEYS.configs + id]: { config: owner.world.store.machines.get(id)?.config },
    });
  const all = open.move();
  return {
    hosts: [first, second, third],
    token,
    ask,
    async make(host, app, name) {
      const config = { image: "app:1", guest: { memory_mb: 128 } };
      const { status, body } = await ask(first, "POST", `/v1/apps/${app}/machines`, {
        name,
        host: host.host.name,
        config,
      });
      if (status !== 201) throw new Error(JSON.stringify(body));
      await claim(host, app, body.id, name);
      await host.platform.machines.wait(app, body.id, ["running"], { timeoutMs: 10_000 });
      return body.id;
    },
    setUp,
    write,
    claim,
    publish: (id, published) => write({ [KEYS.states + id]: { epoch: 1, load: 0, ...published } }),
    hangUp: (name) => accepted.get(name)?.forEach((socket) => socket.destroy()),
    close: () => all.disposeAsync(),
  };
}

/** The templates of a host, which the others get from it without TLS until `open` is disposed. */
async function templatesOf(
  { name, cluster, claims, platform }: TestHost,
  ports: Map<string, number>,
  open: AsyncDisposableStack,
): Promise<OpenedTemplates> {
  const client = new PeerClient({
    ...{ peers: cluster.peers, view: cluster.view, service: "peer" },
    connect: (host) => connect({ port: ports.get(host) ?? 0, host: "127.0.0.1" }),
  });
  const log = { info() {}, warn() {} };
  const templates = openClusterTemplates({
    ...{ cluster, claims, log, rate: new Rate(0), travel: platform.templateTravel },
    send: (...request) => client.send(...request),
  });
  const server = createHttpServer((request, response) => void templates.route(request, response));
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  ports.set(name, (server.address() as AddressInfo).port);
  templates.start();
  open.defer(() => {
    templates.close();
    client.close();
    server.close();
    server.closeAllConnections();
  });
  return templates;
}
