/** Namespaces in the place of machines and of other computers: real rules and packets, without QEMU. */
import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import type { EgressConfig } from "@hibernaut/domain/egress";
import { egressOf, withInjected } from "@hibernaut/domain/egress";
import { parseSubnet } from "@hibernaut/lib/ipv4";
import { onTestFinished } from "vitest";
import { RUN_VARIABLE } from "../../../scripts/leftovers.mjs";
import type { BridgeNetwork } from "../src/bridge/index.ts";
import { forwardingEntry, tapSettings } from "../src/bridge/links.ts";
import { namesFor, tapName } from "../src/bridge/names.ts";
import { machineHost } from "../src/bridge/subnet.ts";
import { macOf } from "../src/mac.ts";

export const isRoot = process.getuid?.() === 0;
/** Programs of a namespace start in a moment, and in several on a busy host. */
const START_MS = 20_000;

const run = promisify(execFile);
export const ip = (line: string) => run("ip", line.split(" "));

/** Says hello to everyone at the ports that it is told. */
const SERVERS = `
const ports = process.argv.slice(1).map(Number);
let open = 0;
for (const port of ports)
  require("net").createServer((socket) => socket.on("error", () => {}).write("hello"))
    .listen(port, "0.0.0.0", () => ++open === ports.length && console.log("ready"));`;
/** Connects to each address, and says what became of it. */
const TRY = `
Promise.all(process.argv.slice(1).map((at) => new Promise((resolve) => {
  const [host, port] = at.split(":");
  const socket = require("net").connect(Number(port), host, () => resolve("open"));
  socket.on("error", ({ code }) => resolve(code)).setTimeout(3000, () => resolve("silence"));
}))).then((all) => { console.log(JSON.stringify(all)); process.exit(); });`;
/** Sends frames, each a line of hexadecimal digits, as they are. */
const SEND = String.raw`
  use Socket; socket(my $out, 17, SOCK_RAW, 0) or die $!;
  open(my $file, "<", "/sys/class/net/$ARGV[0]/ifindex") or die $!; my $index = <$file>;
  while (my $line = <STDIN>) { chomp $line; send($out, pack("H*", $line), 0, pack("S n i S C C a8", 17, 0x0800, $index, 0, 0, 6, "")) or die $!; }`;
/** Prints each frame that has "marker-<letters>" in it, at whatever place. */
const WATCH = String.raw`
  use Socket; socket(my $in, 17, SOCK_RAW, unpack("n", pack("S", 3))) or die $!;
  $| = 1; print "ready\n";
  while (recv($in, my $frame, 65536, 0)) { print "$1\n" while $frame =~ /(marker-[a-z]+)/g; }`;

/** A namespace that is removed with everything in it when the test ends. */
export interface Namespace {
  name: string;
  ip(line: string): Promise<unknown>;
  /** Starts servers, or anything else that prints a line once it is ready; it ends with the test. */
  start(program: string, ...args: string[]): Promise<AsyncIterator<string>>;
  /** What a program prints. */
  says(program: string, ...args: string[]): Promise<string>;
  /** What becomes of connections to `address:port`. */
  tries(...at: string[]): Promise<string[]>;
  /** Sends frames from an interface, whatever is in them. */
  send(device: string, frames: readonly Buffer[]): Promise<void>;
}

export async function namespace(): Promise<Namespace> {
  const name = `hib-${process.env[RUN_VARIABLE] ?? "test"}-${randomBytes(3).toString("hex")}`;
  await run("ip", ["netns", "add", name]);
  onTestFinished(async () => void (await run("ip", ["netns", "delete", name])));
  await run("ip", ["-netns", name, "link", "set", "dev", "lo", "up"]);
  const inside = (program: string, args: readonly string[]) => ["netns", "exec", name, program, ...args];
  const says = async (program: string, ...args: string[]) => (await run("ip", inside(program, args))).stdout;
  return {
    name,
    ip: (line) => run("ip", ["-netns", name, ...line.split(" ")]),
    async start(program, ...args) {
      const child = spawn("ip", inside(program, args), { stdio: ["pipe", "pipe", "inherit"] });
      onTestFinished(async () => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const ended = once(child, "exit");
        child.kill("SIGKILL");
        await ended;
      });
      const lines = createInterface({ input: child.stdout });
      await once(lines, "line", { signal: AbortSignal.timeout(START_MS) });
      return lines[Symbol.asyncIterator]();
    },
    says,
    tries: async (...at) => JSON.parse(await says(process.execPath, "-e", TRY, ...at)) as string[],
    async send(device, frames) {
      const child = spawn("ip", inside("perl", ["-e", SEND, device]), { stdio: ["pipe", "ignore", "inherit"] });
      child.stdin.end(frames.map((frame) => `${frame.toString("hex")}\n`).join(""));
      const [code] = await once(child, "exit");
      if (code !== 0) throw new Error(`the frames were not sent: ${code}`);
    },
  };
}

/** Another computer, with servers at these ports for everybody. */
export async function otherComputer(
  { here, there }: { here: string; there: string },
  ports: readonly number[] = [],
): Promise<Namespace> {
  const computer = await namespace();
  const cable = `tsthib-${randomBytes(3).toString("hex")}`;
  await ip(`link add ${cable} type veth peer name out0 netns ${computer.name}`);
  onTestFinished(async () => void (await ip(`link delete dev ${cable}`)));
  await ip(`link set dev ${cable} alias ${tmpdir()} up`);
  await ip(`address add ${here}/30 dev ${cable}`);
  await computer.ip("link set dev out0 up");
  await computer.ip(`address add ${there}/30 dev out0`);
  if (ports.length > 0) await computer.start(process.execPath, "-e", SERVERS, ...ports.map(String));
  return computer;
}

/** The texts `marker-<letters>` in all frames that come to a namespace from now on. */
export async function markersIn(watched: Namespace): Promise<ReadonlySet<string>> {
  const lines = await watched.start("perl", "-e", WATCH);
  const heard = new Set<string>();
  void (async () => {
    for (;;) {
      const { value, done } = await lines.next();
      if (done === true) return;
      heard.add(value);
    }
  })();
  return heard;
}

/** What becomes of connections of the host itself to `address:port`. */
export async function triesHere(...at: string[]): Promise<string[]> {
  const { stdout } = await run(process.execPath, ["-e", TRY, ...at]);
  return JSON.parse(stdout) as string[];
}

/** What the host has in the place of a machine's tap. */
export interface Guest extends Namespace {
  id: string;
  app: string;
  address: string;
  mac: string;
  gateway: string;
  /** Changes where it may connect to. */
  govern(egress: EgressConfig | undefined): Promise<void>;
}

interface GuestOptions {
  dataDir: string;
  app?: string;
  /** One digit. */
  number?: number;
  egress?: EgressConfig;
  /** What is added to requests, by name. */
  injected?: Record<string, string>;
}

/** A namespace that is connected as a machine is. */
export async function guestOf(
  network: BridgeNetwork,
  { dataDir, app = "shop", number = 1, egress, injected }: GuestOptions,
): Promise<Guest> {
  const id = `0000000000000${number}`;
  const address = network.allocate(new Set());
  const known = { id, app, address };
  const rules = (config: EgressConfig | undefined) => ({
    ...known,
    egress: withInjected(config && egressOf(config), injected),
  });
  const { mac, guest } = await network.attach(rules(egress));
  const subnet = parseSubnet(network.subnet);
  const host = subnet && machineHost(subnet, address);
  if (host === undefined) throw new Error("the machine has no address");
  const names = namesFor(dataDir);
  const tap = tapName(names, host);
  const inside = await namespace();
  await ip(`link delete dev ${tap}`);
  await ip(`link add ${tap} type veth peer name eth0 netns ${inside.name}`);
  onTestFinished(async () => void (await ip(`link delete dev ${tap}`)));
  for (const line of tapSettings(names, { tap, mac: macOf(id), address, group: app })) await ip(line);
  const [, ...entry] = forwardingEntry({ tap, mac, address, group: app }).split(" ");
  await run("bridge", ["fdb", ...entry]);
  await inside.ip(`link set dev eth0 address ${mac} up`);
  await inside.ip(`address add ${guest.address} dev eth0`);
  await inside.ip(`route add default via ${guest.gateway}`);
  const govern = (config: EgressConfig | undefined) => network.govern(rules(config));
  return { ...inside, ...known, mac, gateway: guest.gateway, govern };
}

/** A server of this host, on all its addresses. Resolves with its port. */
export async function serverHere(): Promise<number> {
  const server = createServer((socket) => socket.on("error", () => {}).end("hello")).listen(0, "0.0.0.0");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return (server.address() as { port: number }).port;
}
