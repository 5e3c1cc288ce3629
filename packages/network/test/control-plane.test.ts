/**
 * What a guest tries against the control plane of its cluster, with real rules and packets: from a namespace in the place
 * of a machine, against the host and a namespace in the place of another host.
 */
import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { promisify } from "node:util";
import { parseSubnet } from "@hibernaut/lib/ipv4";
import { expect, onTestFinished, test } from "vitest";
import { RUN_VARIABLE } from "../../../scripts/leftovers.mjs";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { BridgeNetwork } from "../src/bridge/index.ts";
import { forwardingEntry, tapSettings } from "../src/bridge/links.ts";
import { namesFor, tapName } from "../src/bridge/names.ts";
import { uninstallBridge } from "../src/bridge/remove.ts";
import { machineHost } from "../src/bridge/subnet.ts";
import { macOf } from "../src/mac.ts";

const run = promisify(execFile);
const isRoot = process.getuid?.() === 0;
/** TEST-NET-3: no real network uses it. */
const HOST = "203.0.113.1";
const OTHER = "203.0.113.2";
/** etcd for clients and for its members, a host's peer port, and an app's own service. */
const PORTS = { etcd: 2379, members: 2380, peer: 4290, service: 8080 };

const SERVERS = `
let open = 0;
for (const port of ${JSON.stringify(Object.values(PORTS))})
  require("net").createServer((socket) => socket.on("error", () => {}).end("hello"))
    .listen(port, "0.0.0.0", () => ++open === ${Object.keys(PORTS).length} && console.log("ready"));`;
const TRY = `
Promise.all(process.argv.slice(1).map((at) => new Promise((resolve) => {
  const [host, port] = at.split(":");
  const socket = require("net").connect(Number(port), host, () => resolve("open"));
  socket.on("error", ({ code }) => resolve(code)).setTimeout(3000, () => resolve("silence"));
}))).then((all) => { console.log(JSON.stringify(all)); process.exit(); });`;

/** A namespace that is removed with everything in it when the test ends. */
async function namespace(): Promise<{ name: string; ip(line: string): Promise<unknown> }> {
  const name = `hib-${process.env[RUN_VARIABLE] ?? "test"}-${randomBytes(3).toString("hex")}`;
  await run("ip", ["netns", "add", name]);
  onTestFinished(async () => void (await run("ip", ["netns", "delete", name])));
  await run("ip", ["-netns", name, "link", "set", "dev", "lo", "up"]);
  return { name, ip: (line) => run("ip", ["-netns", name, ...line.split(" ")]) };
}

const ip = (line: string) => run("ip", line.split(" "));

/** Another computer, whose servers answer everybody. */
async function otherHost(): Promise<void> {
  const there = await namespace();
  const cable = `tsthib-${randomBytes(3).toString("hex")}`;
  await ip(`link add ${cable} type veth peer name out0 netns ${there.name}`);
  onTestFinished(async () => void (await ip(`link delete dev ${cable}`)));
  await ip(`link set dev ${cable} alias ${tmpdir()} up`);
  await ip(`address add ${HOST}/30 dev ${cable}`);
  await there.ip("link set dev out0 up");
  await there.ip(`address add ${OTHER}/30 dev out0`);
  const servers = spawn("ip", ["netns", "exec", there.name, process.execPath, "-e", SERVERS], { stdio: "pipe" });
  onTestFinished(async () => {
    const ended = once(servers, "exit");
    servers.kill("SIGKILL");
    await ended;
  });
  await once(servers.stdout, "data", { signal: AbortSignal.timeout(20_000) });
}

/** A namespace that is connected as a machine is. Resolves with how it tries to connect to addresses. */
async function guestOf(network: BridgeNetwork, dataDir: string): Promise<(...at: string[]) => Promise<string[]>> {
  const id = "00000000000001";
  const address = network.allocate(new Set());
  const { mac, guest } = await network.attach({ id, app: "shop", address });
  const subnet = parseSubnet(network.subnet);
  const host = subnet && machineHost(subnet, address);
  if (host === undefined) throw new Error("the machine has no address");
  const names = namesFor(dataDir);
  const tap = tapName(names, host);
  const inside = await namespace();
  await ip(`link delete dev ${tap}`);
  await ip(`link add ${tap} type veth peer name eth0 netns ${inside.name}`);
  onTestFinished(async () => void (await ip(`link delete dev ${tap}`)));
  for (const line of tapSettings(names, { tap, mac: macOf(id), address, app: "shop" })) await ip(line);
  const [, ...entry] = forwardingEntry({ tap, mac, address, app: "shop" }).split(" ");
  await run("bridge", ["fdb", ...entry]);
  await inside.ip(`link set dev eth0 address ${mac} up`);
  await inside.ip(`address add ${guest.address} dev eth0`);
  await inside.ip(`route add default via ${guest.gateway}`);
  return async (...at) => {
    const { stdout } = await run("ip", ["netns", "exec", inside.name, process.execPath, "-e", TRY, ...at]);
    return JSON.parse(stdout) as string[];
  };
}

async function serverHere(): Promise<number> {
  const server = createServer((socket) => socket.on("error", () => {}).end("hello")).listen(0, "0.0.0.0");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return (server.address() as { port: number }).port;
}

test.skipIf(!isRoot)(
  "reaches neither etcd nor hosts of the cluster, directly or behind its host's address",
  async () => {
    await otherHost();
    const [peer, etcd, service] = [await serverHere(), await serverHere(), await serverHere()];
    const dataDir = await tempFolder("control");
    onTestFinished(() => uninstallBridge(dataDir));
    const options = { dataDir, subnet: "auto", machines: [], controlPorts: [peer], blocked: [] };
    const network = await BridgeNetwork.open(options);
    onTestFinished(() => network.close());
    const tries = await guestOf(network, dataDir);
    const at = (...ports: number[]) => ports.map((port) => `${OTHER}:${port}`);
    const control = at(PORTS.etcd, PORTS.members, PORTS.peer);
    // A host alone keeps its machines from nothing of the kind: it is the rules, and not the wiring, that does it.
    expect(await tries(...control)).toEqual(["open", "open", "open"]);

    const endpoint = (text: string) => ({ address: text.split(":")[0] ?? "", port: Number(text.split(":")[1]) });
    const controlAddresses = [...control, `${HOST}:${etcd}`].map(endpoint);
    await network.protect({ controlPorts: [peer], controlAddresses });
    expect(await tries(...control)).toEqual(["ECONNREFUSED", "ECONNREFUSED", "ECONNREFUSED"]);
    // This host's own peer port at each of its addresses, and an etcd that runs on it.
    const { gateway } = network;
    expect(await tries(`${gateway}:${peer}`, `${HOST}:${peer}`, `${HOST}:${etcd}`)).toEqual(
      Array.from({ length: 3 }, () => "ECONNREFUSED"),
    );
    // What is not the cluster's is reached as before.
    expect(await tries(...at(PORTS.service), `${gateway}:${service}`)).toEqual(["open", "open"]);
    // The host itself is not kept from its cluster.
    const { stdout } = await run(process.execPath, ["-e", TRY, ...control]);
    expect(JSON.parse(stdout)).toEqual(["open", "open", "open"]);
  },
);
