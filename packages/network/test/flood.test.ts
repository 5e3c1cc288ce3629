/** What one guest can take of the host's table of connections, with the real rules and frames of guests that lie. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { parseSubnet } from "@hibernaut/lib/ipv4";
import { expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { BridgeNetwork } from "../src/bridge/index.ts";
import type { FlowLimits } from "../src/bridge/limits.ts";
import { gatewayMac } from "../src/bridge/links.ts";
import { uninstallBridge } from "../src/bridge/remove.ts";

const isRoot = process.getuid?.() === 0;
/** The first port that guests send from. */
const PORT = 10_000;

/**
 * A guest: sends datagrams from `count` ports, beginning with `first`, for each line `first count port text`. As in
 * linux/if_tun.h, the first call makes an open /dev/net/tun the far side of a tap.
 */
const GUEST = String.raw`
  my ($name, $mac, $to_mac, $from, $to) = @ARGV;
  open(my $tap, "+<", "/dev/net/tun") or die $!;
  ioctl($tap, 0x400454ca, pack("a16 s x22", $name, 0x1002)) or die $!;
  sub mac { pack("C6", map { hex } split /:/, $_[0]) }
  sub ip { pack("C4", split /\./, $_[0]) }
  sub sum { my $s = 0; $s += $_ for unpack("n*", $_[0]); $s = ($s >> 16) + ($s & 0xffff) while $s >> 16; ~$s & 0xffff }
  $| = 1; print "open\n";
  while (my $line = <STDIN>) {
    my ($first, $count, $port, $text) = split " ", $line;
    for my $source ($first .. $first + $count - 1) {
      my $udp = pack("n4 a*", $source, $port, 8 + length $text, 0, $text);
      my $head = sub { pack("C2 n3 C2 n a4 a4", 0x45, 0, 20 + length $udp, 0, 0, 64, 17, $_[0], ip($from), ip($to)) };
      syswrite($tap, mac($to_mac) . mac($mac) . pack("n", 0x0800) . $head->(sum($head->(0))) . $udp);
    }
    print "sent\n";
  }`;

interface Guest {
  address: string;
  /** Sends a datagram from each of `count` ports, beginning with `first`. */
  send(first: number, count: number, text: string): Promise<void>;
}

async function say(process: ChildProcessWithoutNullStreams, lines: AsyncIterator<string>, line: string) {
  process.stdin.write(`${line}\n`);
  expect(await lines.next()).toMatchObject({ value: "sent" });
}

/** A network with these limits, a socket of the host in it, and a way to add guests. */
async function open(limits: FlowLimits) {
  const dataDir = await tempFolder("flood");
  onTestFinished(() => uninstallBridge(dataDir));
  const network = await BridgeNetwork.open({
    dataDir,
    subnet: "auto",
    machines: [],
    controlPorts: [],
    blocked: [],
    limits,
  });
  onTestFinished(() => network.close());
  /** Which ports of which machine were heard, by text. */
  const heard = new Set<string>();
  const socket = createSocket({ type: "udp4", recvBufferSize: 4 * 1024 * 1024 });
  socket.on("message", (text, { address, port }) => heard.add(`${String(text)} ${address} ${port}`));
  socket.bind(0, network.gateway);
  await once(socket, "listening");
  onTestFinished(() => void socket.close());
  const { port } = socket.address();
  const gateway = gatewayMac(parseSubnet(network.subnet) ?? { base: 0, prefix: 0 });

  const addMachine = async (id: string) => {
    const machine = { id, app: "shop", address: network.allocate(new Set()) };
    return { ...(await network.attach(machine)), address: machine.address };
  };
  const add = async (id: string): Promise<Guest> => {
    const attached = await addMachine(id);
    if (attached.mode !== "tap") throw new Error("not on a bridge");
    const args = [attached.device, attached.mac, gateway, attached.address, network.gateway];
    const guest = spawn("perl", ["-e", GUEST, ...args]);
    onTestFinished(async () => {
      guest.kill();
      if (guest.exitCode === null && guest.signalCode === null) await once(guest, "exit");
    });
    const lines = createInterface(guest.stdout)[Symbol.asyncIterator]();
    expect(await lines.next()).toMatchObject({ value: "open" });
    const made: Guest = {
      address: attached.address,
      send: (first, many, text) => say(guest, lines, `${first} ${many} ${port} ${text}`),
    };
    // The bridge learns a moment later that there is someone at the tap.
    await expect.poll(() => made.send(PORT, 1, "ready").then(() => count("ready", made))).toBe(1);
    return made;
  };
  /** How many datagrams with that text were heard of a guest. */
  const count = (text: string, { address }: Guest) =>
    [...heard].filter((line) => line.startsWith(`${text} ${address} `)).length;
  return { add, addMachine, count };
}

test.skipIf(!isRoot)("a guest that opens flows without end has up to 50, and others connect as before", async () => {
  const { add, addMachine, count } = await open({ connections: 50, perSecond: 0 });
  const [greedy, modest] = [await add("00000000000001"), await add("00000000000002")];
  await greedy.send(PORT, 400, "flood");
  await modest.send(PORT, 1, "hello");
  await expect.poll(() => count("hello", modest)).toBe(1);
  expect(count("flood", greedy)).toBe(50);

  // What it has keeps working, also when it is used a lot.
  for (let times = 0; times < 20; times += 1) await greedy.send(PORT, 50, `again${times}`);
  await expect.poll(() => count("again19", greedy)).toBe(50);

  // Another machine is created, which loads all rules again: what was counted stays counted.
  await addMachine("00000000000003");
  await greedy.send(20_000, 100, "more");
  await modest.send(20_000, 49, "more");
  await expect.poll(() => count("more", modest)).toBe(49);
  expect(count("more", greedy)).toBe(0);
});

test.skipIf(!isRoot)("a guest opens up to 40 flows at once, and more in the next seconds", async () => {
  const { add, count } = await open({ connections: 0, perSecond: 20 });
  const [hasty, calm] = [await add("00000000000001"), await add("00000000000002")];
  await hasty.send(PORT, 400, "flood");
  await calm.send(PORT, 20, "hello");
  await expect.poll(() => count("hello", calm)).toBe(20);
  // A burst of two seconds, and what came in while they were sent.
  expect(count("flood", hasty)).toBeGreaterThanOrEqual(40);
  expect(count("flood", hasty)).toBeLessThan(100);
  await expect
    .poll(async () => {
      await hasty.send(20_000, 1, "later");
      return count("later", hasty);
    })
    .toBe(1);
});

test.skipIf(!isRoot)("a datagram from port 0, to which nobody can reply, is dropped", async () => {
  const { add, count } = await open({ connections: 0, perSecond: 0 });
  const guest = await add("00000000000001");
  // Of the two, the one from port 0 comes first.
  await guest.send(0, 2, "hello");
  await expect.poll(() => count("hello", guest)).toBe(1);
});
