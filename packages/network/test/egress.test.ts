/** Where machines may connect to by their own rules, with the real rules and packets, also of guests that lie. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { chmod, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { egressOf } from "@hibernaut/domain/egress";
import { parseSubnet } from "@hibernaut/lib/ipv4";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { MOST_LEARNT } from "../src/bridge/egress/learnt.ts";
import { BridgeNetwork } from "../src/bridge/index.ts";
import { gatewayMac } from "../src/bridge/links.ts";
import { uninstallBridge } from "../src/bridge/remove.ts";
import type { Refused } from "../src/contract.ts";
import { type Guest, guestOf, isRoot, markersIn, otherComputer, serverHere } from "./rig.ts";

/** TEST-NET-3: no real network uses it. */
const ONE = { here: "203.0.113.5", there: "203.0.113.6" };
const TWO = { here: "203.0.113.9", there: "203.0.113.10" };
const PORTS = { http: 80, tls: 443, ssh: 22 };
const [OPEN, REFUSED, SILENCE] = ["open", "ECONNREFUSED", "silence"];

/** A network, and two computers outside. */
async function world() {
  const dataDir = await tempFolder("egress");
  onTestFinished(() => uninstallBridge(dataDir));
  const refused: Refused[] = [];
  const options = { dataDir, subnet: "auto", machines: [], controlPorts: [], blocked: [] };
  const network = await BridgeNetwork.open({ ...options, onRefused: (list) => refused.push(...list) });
  onTestFinished(() => network.close());
  const one = await otherComputer(ONE, Object.values(PORTS));
  const two = await otherComputer(TWO, Object.values(PORTS));
  return { dataDir, network, one, two, refused };
}

const ssh = ({ there }: { there: string }) => `${there}:${PORTS.ssh}`;

describe.skipIf(!isRoot)("a machine with rules", () => {
  test("reaches what they allow and nothing else, not even its host and its siblings, and answers everyone it may", async () => {
    const { network, dataDir } = await world();
    const service = await serverHere();
    const guest = await guestOf(network, { dataDir, egress: { default: "deny", allow: [`${ONE.there}/32`] } });
    const sibling = await guestOf(network, { dataDir, number: 2 });
    await sibling.start(process.execPath, "-e", 'require("net").createServer().listen(8080, () => console.log(""))');
    await guest.start(
      process.execPath,
      "-e",
      'require("net").createServer((s) => s.end("hi")).listen(8080, () => console.log(""))',
    );
    const at = [ssh(ONE), ssh(TWO), `${guest.gateway}:${service}`, `${sibling.address}:8080`];
    expect(await guest.tries(...at)).toEqual([OPEN, REFUSED, REFUSED, SILENCE]);
    // A machine without rules reaches them as ever.
    expect(await sibling.tries(ssh(ONE), ssh(TWO), `${guest.gateway}:${service}`)).toEqual([OPEN, OPEN, OPEN]);
    // The host reaches the machine, as it does for requests.
    const inbound = connect(8080, guest.address);
    expect(String((await once(inbound, "data"))[0])).toBe("hi");
    inbound.destroy();

    await guest.govern({ default: "deny", allow: [ssh(ONE).split(":")[0] ?? "", sibling.address] });
    expect(await guest.tries(...at)).toEqual([OPEN, REFUSED, REFUSED, OPEN]);
    await guest.govern(undefined);
    expect(await guest.tries(...at)).toEqual([OPEN, OPEN, OPEN, OPEN]);
  });

  test("does not reach what they deny, except for what they allow of it, and has what it had otherwise", async () => {
    const { network, dataDir } = await world();
    const service = await serverHere();
    const egress = { deny: ["203.0.113.0/24"], allow: [TWO.there] };
    const guest = await guestOf(network, { dataDir, egress });
    expect(await guest.tries(ssh(ONE), ssh(TWO), `${guest.gateway}:${service}`)).toEqual([REFUSED, OPEN, OPEN]);
  });

  test("loses connections that new rules do not allow, and keeps the others", async () => {
    const { network, dataDir } = await world();
    const guest = await guestOf(network, { dataDir });
    const hold = (at: string) => {
      const [host, port] = at.split(":");
      // Says something every 50 ms, and how the connection ended.
      const program = `const s = require("net").connect(${port}, "${host}", () => { console.log("open"); setInterval(() => s.write("."), 50); });
        s.resume().on("error", ({ code }) => { console.log(code); process.exit(); });`;
      return guest.start(process.execPath, "-e", program);
    };
    const [one, two] = [await hold(ssh(ONE)), await hold(ssh(TWO))];
    await guest.govern({ default: "deny", allow: [TWO.there] });
    expect(await one.next()).toMatchObject({ value: "ECONNRESET" });
    // The one that is allowed was there before the rules, and lives under them and under the next ones.
    await guest.govern({ default: "deny", allow: [TWO.there, "192.0.2.1"] });
    expect(await guest.tries(ssh(TWO))).toEqual([OPEN]);
    // It writes several times while another one is made, and would have said how it ended.
    expect(await Promise.race([two.next(), Promise.resolve("lives")])).toBe("lives");
  });

  test("reaches an address of a name once it was told it, on ports that need no certainty, until the rules change", async () => {
    const { network, dataDir } = await world();
    const guest = await guestOf(network, { dataDir, egress: { default: "deny", allow: ["git.example.com"] } });
    const rules = () => network.machineAt(guest.address)?.egress ?? egressOf({});
    const first = rules();
    const all = Object.values(PORTS).map((port) => `${ONE.there}:${port}`);
    expect(await guest.tries(...all)).toEqual([REFUSED, REFUSED, REFUSED]);
    const answer = [{ address: ONE.there, ttlS: 300 }];
    expect(await network.learn(guest.address, first, answer)).toBe(true);
    expect(await guest.tries(...all, ssh(TWO))).toEqual([REFUSED, REFUSED, OPEN, REFUSED]);
    // HTTP and TLS are led to where their names are read.
    const gate = createServer((socket) => socket.on("error", () => {}).end()).listen(0, "0.0.0.0");
    onTestFinished(() => void gate.close());
    await once(gate, "listening");
    const { port } = gate.address() as { port: number };
    await network.judge({ gate: { http: port, tls: port }, dns: false });
    expect(await guest.tries(...all)).toEqual([OPEN, OPEN, OPEN]);
    expect(await guest.tries(`${TWO.there}:443`, ssh(TWO))).toEqual([OPEN, REFUSED]);
    // Nobody is led there who was not led there: no machine with rules, and none without.
    const sibling = await guestOf(network, { dataDir, number: 2 });
    for (const one of [guest, sibling]) expect(await one.tries(`${guest.gateway}:${port}`)).toEqual([REFUSED]);

    await guest.govern({ default: "deny", allow: ["www.example.com"] });
    expect(await guest.tries(ssh(ONE))).toEqual([REFUSED]);
    // An answer to a question from before comes late, and counts no longer.
    expect(await network.learn(guest.address, first, answer)).toBe(false);
    expect(await guest.tries(ssh(ONE))).toEqual([REFUSED]);
    const many = Array.from({ length: MOST_LEARNT }, (_, index) => ({ address: `192.0.2.${index}`, ttlS: 1 }));
    expect(await network.learn(guest.address, rules(), many)).toBe(true);
    expect(await network.learn(guest.address, rules(), answer)).toBe(false);
    expect(await guest.tries(ssh(ONE))).toEqual([REFUSED]);
  });

  test("gets nothing out with packets that belong to no connection, come in pieces, or lie about who they are for", async () => {
    const { network, dataDir, one, two } = await world();
    const guest = await guestOf(network, { dataDir, egress: { default: "deny", allow: [TWO.there] } });
    const accomplice = await guestOf(network, { dataDir, number: 2 });
    const port = await hearsDatagrams();
    const [outside, allowed, beside] = [await markersIn(one), await markersIn(two), await markersIn(accomplice)];
    const toGateway = gatewayMac(parseSubnet(network.subnet) ?? { base: 0, prefix: 0 });
    const to = (address: string, mac = toGateway) => ({ from: guest, address, mac });
    const honest = (from: Guest, text: string, { there }: { there: string }) =>
      from.send("eth0", [packet({ from, address: there, mac: toGateway }, 17, datagram(text))]);
    const attack = [
      ...[0x02, 0x10, 0x18, 0x12, 0x01, 0x04, 0x00].map((flags) =>
        packet(to(ONE.there), 6, segment(flags, "marker-tcp")),
      ),
      packet(to(ONE.there), 17, datagram("marker-udp")),
      packet(to(ONE.there), 1, Buffer.concat([Buffer.from([8, 0, 0, 0, 0, 1, 0, 1]), Buffer.from("marker-ping")])),
      // An error message about nothing, whose connection nobody knows.
      packet(to(ONE.there), 1, Buffer.concat([Buffer.from([3, 1, 0, 0, 0, 0, 0, 0]), Buffer.from("marker-error")])),
      packet(to(ONE.there), 132, Buffer.from("marker-sctp")),
      ...pieces(to(ONE.there), Buffer.concat([datagram("marker-pieces"), Buffer.alloc(64)])),
      // To the sibling, and to addresses that are allowed or nobody's, by the sibling's MAC.
      ...[accomplice.address, TWO.there, ONE.there].map((address) =>
        packet(to(address, accomplice.mac), 17, datagram("marker-beside")),
      ),
      packet(to(accomplice.address, "ff:ff:ff:ff:ff:ff"), 17, datagram("marker-beside")),
      // Questions of ARP, which ask nothing.
      arp(to(accomplice.address, "ff:ff:ff:ff:ff:ff"), "marker-asks"),
      arp(to(guest.gateway, "ff:ff:ff:ff:ff:ff"), "marker-asks"),
      arp(to(accomplice.address, accomplice.mac), `marker-asks${" ".repeat(900)}`),
      // To the host, by an address that its bridge hands over without a look.
      ...["0e", "03"].map((last) =>
        packet(to(ONE.here, `01:80:c2:00:00:${last}`), 17, datagram("marker-host", port.number)),
      ),
      // As its sibling, which may.
      packet({ ...to(ONE.there), as: accomplice.address }, 17, datagram("marker-as")),
      ipv6(guest.mac, toGateway, "marker-six"),
    ];
    await guest.send("eth0", attack);
    await honest(guest, "marker-allowed", TWO);
    await expect.poll(() => [...allowed], { timeout: 10_000 }).toEqual(["marker-allowed"]);
    // What the sibling sends arrives last, so all else would have been heard by then.
    await honest(accomplice, "marker-honest", ONE);
    await expect.poll(() => [...outside], { timeout: 10_000 }).toEqual(["marker-honest"]);
    expect([...beside].filter((marker) => marker !== "marker-honest")).toEqual([]);
    expect(port.heard).toEqual([]);

    // It is the rules that keep them in.
    await guest.govern(undefined);
    await guest.send("eth0", attack);
    await expect
      .poll(() => [...outside, ...beside], { timeout: 10_000 })
      .toEqual(expect.arrayContaining(["marker-udp", "marker-ping", "marker-pieces", "marker-beside"]));
    expect(outside).not.toContain("marker-as");
  });

  test("is kept from nothing that the kernel was not told, and tries again", async () => {
    const { network, dataDir } = await world();
    const guest = await guestOf(network, { dataDir });
    const closed = { default: "deny" as const };
    await network.requireRules(egressOf(closed));
    vi.stubEnv("PATH", `${await brokenNft()}:${process.env["PATH"]}`);
    try {
      await expect(guest.govern(closed)).rejects.toThrow(/nft failed/);
    } finally {
      vi.unstubAllEnvs();
    }
    expect(network.machineAt(guest.address)?.egress).toBeUndefined();
    await guest.govern(closed);
    expect(await guest.tries(ssh(ONE))).toEqual([REFUSED]);
  });

  test("with an allowed sibling reaches that one, and no other by its name for it", async () => {
    const { network, dataDir } = await world();
    const guest = await guestOf(network, { dataDir });
    const [friend, other] = [
      await guestOf(network, { dataDir, number: 2 }),
      await guestOf(network, { dataDir, number: 3 }),
    ];
    await guest.govern({ default: "deny", allow: [friend.address] });
    const [there, beside] = [await markersIn(friend), await markersIn(other)];
    const to = (mac: string) => ({ from: guest, address: friend.address, mac });
    await guest.send("eth0", [
      packet(to(other.mac), 17, datagram("marker-wrong")),
      arp(to(other.mac), "marker-wrong"),
      packet(to(friend.mac), 17, datagram("marker-right")),
    ]);
    await expect.poll(() => [...there], { timeout: 10_000 }).toContain("marker-right");
    expect([...beside]).toEqual([]);
  });

  test("has what it was kept from told, each destination once, and one that tries many hides nobody else's", async () => {
    const { network, dataDir, refused } = await world();
    const egress = { default: "deny" as const };
    const noisy = await guestOf(network, { dataDir, egress });
    const quiet = await guestOf(network, { dataDir, number: 2, egress });
    const toGateway = gatewayMac(parseSubnet(network.subnet) ?? { base: 0, prefix: 0 });
    const frames = Array.from({ length: 500 }, (_, index) =>
      packet({ from: noisy, address: `198.51.100.${index % 250}`, mac: toGateway }, 17, datagram("x", 1000 + index)),
    );
    await noisy.send("eth0", frames);
    await quiet.tries(ssh(ONE), ssh(ONE));
    const of = ({ id }: Guest) => refused.filter(({ machineId }) => machineId === id);
    await expect.poll(() => of(quiet), { timeout: 20_000, interval: 100 }).not.toEqual([]);
    expect(of(quiet)).toEqual([{ machineId: quiet.id, address: ONE.there, protocol: "tcp", port: PORTS.ssh }]);
    expect(of(noisy).length).toBeLessThan(60);
    expect(of(noisy).length).toBeGreaterThan(5);
  });
});

/** A server of the host for datagrams, on all its addresses. */
async function hearsDatagrams(): Promise<{ number: number; heard: string[] }> {
  const heard: string[] = [];
  const socket = createSocket("udp4").on("message", (text) => heard.push(String(text)));
  onTestFinished(() => void socket.close());
  socket.bind(0, "0.0.0.0");
  await once(socket, "listening");
  return { number: socket.address().port, heard };
}

/** A directory with an `nft` that fails. */
async function brokenNft(): Promise<string> {
  const folder = await tempFolder("nft");
  await writeFile(join(folder, "nft"), "#!/bin/sh\necho no >&2; exit 1\n");
  await chmod(join(folder, "nft"), 0o755);
  return folder;
}

interface To {
  from: Guest;
  address: string;
  mac: string;
  /** The address that the packet says it is from. */
  as?: string;
}

const macBytes = (mac: string) => Buffer.from(mac.replaceAll(":", ""), "hex");
const ipBytes = (address: string) => Buffer.from(address.split(".").map(Number));

function checksum(bytes: Buffer): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) sum += bytes.readUInt16BE(at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

/** A frame with an IPv4 packet. `fragment` is the field of flags and offset. */
function packet(
  { from, address, mac, as = from.address }: To,
  protocol: number,
  payload: Buffer,
  fragment = 0,
): Buffer {
  const head = Buffer.alloc(20);
  head.writeUInt16BE(0x4500, 0);
  head.writeUInt16BE(20 + payload.length, 2);
  head.writeUInt16BE(77, 4);
  head.writeUInt16BE(fragment, 6);
  head.writeUInt16BE((64 << 8) | protocol, 8);
  ipBytes(as).copy(head, 12);
  ipBytes(address).copy(head, 16);
  head.writeUInt16BE(checksum(head), 10);
  return Buffer.concat([macBytes(mac), macBytes(from.mac), Buffer.from([0x08, 0]), head, payload]);
}

/** The packet in pieces, the second of which has no ports. */
function pieces(to: To, payload: Buffer): Buffer[] {
  const first = 16;
  return [packet(to, 17, payload.subarray(0, first), 0x2000), packet(to, 17, payload.subarray(first), first / 8)];
}

/** A question for an address, with a text behind it. */
function arp({ from, address, mac }: To, text: string): Buffer {
  const head = Buffer.from("0001080006040001", "hex");
  const body = [head, macBytes(from.mac), ipBytes(from.address), Buffer.alloc(6), ipBytes(address), Buffer.from(text)];
  return Buffer.concat([macBytes(mac), macBytes(from.mac), Buffer.from([0x08, 0x06]), ...body]);
}

/** Without a checksum, which IPv4 does not require. */
function datagram(text: string, port = 9000): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt16BE(9000, 0);
  head.writeUInt16BE(port, 2);
  head.writeUInt16BE(8 + text.length, 4);
  return Buffer.concat([head, Buffer.from(text)]);
}

function segment(flags: number, text: string): Buffer {
  const head = Buffer.alloc(20);
  head.writeUInt16BE(9000, 0);
  head.writeUInt16BE(PORTS.ssh, 2);
  head.writeUInt32BE(1, 4);
  head.writeUInt16BE(0x5000 | flags, 12);
  head.writeUInt16BE(1000, 14);
  return Buffer.concat([head, Buffer.from(text)]);
}

function ipv6(from: string, to: string, text: string): Buffer {
  const head = Buffer.alloc(40);
  head.writeUInt32BE(0x60000000, 0);
  head.writeUInt16BE(text.length, 4);
  head.writeUInt16BE((59 << 8) | 64, 6);
  return Buffer.concat([macBytes(to), macBytes(from), Buffer.from([0x86, 0xdd]), head, Buffer.from(text)]);
}
