/** What one client can take of the platform's time with new connections, with the real rules and packets. */
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { clientTable } from "../src/bridge/clients.ts";
import { BridgeNetwork, type BridgeOptions } from "../src/bridge/index.ts";
import { namesFor } from "../src/bridge/names.ts";
import { uninstallBridge } from "../src/bridge/remove.ts";
import { guestOf, ip, isRoot, type Namespace, otherComputer, triesHere } from "./rig.ts";

/** TEST-NET-3 and the documentation's IPv6: no real network uses them. */
const ONE = { here: "203.0.113.17", there: "203.0.113.18" };
const TWO = { here: "203.0.113.21", there: "203.0.113.22" };
const SIX = { here: "2001:db8:0:17::1", there: "2001:db8:0:17::2", sibling: "2001:db8:0:17:8000::3" };
const PER_SECOND = 20;
const BURST = 5 * PER_SECOND;
const MANY = 3 * BURST;

/** Opens N connections at once, from an address, and ends when the server hangs up. */
const FLOOD = `
const [host, port, count, localAddress] = process.argv.slice(1);
for (let each = 0; each < Number(count); each += 1)
  require("net").connect({ host, port: Number(port), localAddress }).on("error", () => {}).on("end", () => process.exit()).resume();`;

/** A server of the host that counts, and hangs up when it is told. */
async function counter() {
  const sockets = new Set<Socket>();
  const counts = { accepted: 0 };
  const server = createServer((socket) => {
    counts.accepted += 1;
    sockets.add(socket.on("error", () => {}));
  }).listen(0, "::");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const hangUp = () => {
    for (const socket of sockets) socket.end().resume();
    sockets.clear();
  };
  onTestFinished(hangUp);
  return { port: (server.address() as { port: number }).port, counts, hangUp };
}

async function world({ exempt = [] as string[] } = {}) {
  const dataDir = await tempFolder("clients");
  onTestFinished(() => uninstallBridge(dataDir));
  const server = await counter();
  const open = async (machines: BridgeOptions["machines"]) => {
    const network = await BridgeNetwork.open({
      ...{ dataDir, subnet: "auto", machines, controlPorts: [], blocked: [] },
      ...{ clients: { perSecond: PER_SECOND, exempt }, clientPorts: [server.port] },
    });
    onTestFinished(() => network.close());
    return network;
  };
  const network = await open([]);
  /** Lets a client open many connections as fast as it can. Resolves with how many it got, and in how many seconds. */
  const flood = async (from: Namespace, host: string, { count = MANY, as = [] as string[] } = {}) => {
    const before = { accepted: server.counts.accepted, dropped: await network.dropped() };
    const began = performance.now();
    const ended = from.says(process.execPath, "-e", FLOOD, host, String(server.port), String(count), ...as);
    const accepted = () => server.counts.accepted - before.accepted;
    const dropped = async () => (await network.dropped()) - before.dropped;
    await expect.poll(async () => accepted() + (await dropped()), { timeout: 20_000 }).toBeGreaterThanOrEqual(count);
    // From its first connection on, so this is more than it had.
    const seconds = (performance.now() - began) / 1000;
    const counted = { accepted: accepted(), dropped: await dropped(), seconds };
    server.hangUp();
    await ended;
    return counted;
  };
  return { dataDir, network, open, server, flood };
}

/** What a client gets that has nothing left of its burst. */
const trickle = (seconds: number) => Math.ceil(PER_SECOND * seconds) + 1;

test.skipIf(!isRoot)(
  "a client that opens connections as fast as it can gets a burst and then 20 per second, while others get theirs at once",
  async () => {
    const { dataDir, network, open, server, flood } = await world();
    const [hasty, calm] = [await otherComputer(ONE, [80]), await otherComputer(TWO, [80])];
    const first = await flood(hasty, ONE.here);
    expect(first.accepted).toBeGreaterThanOrEqual(BURST);
    expect(first.accepted).toBeLessThanOrEqual(BURST + trickle(first.seconds));

    const at = (host: string, count: number) => Array.from({ length: count }, () => `${host}:${server.port}`);
    const all = (count: number) => Array.from({ length: count }, () => "open");
    const dropped = await network.dropped();
    expect(await calm.tries(...at(TWO.here, BURST / 2))).toEqual(all(BURST / 2));
    // What runs on the host is not limited, at any of its addresses, nor is a machine, which has a limit of its own.
    expect(await triesHere(...at("127.0.0.1", MANY), ...at(ONE.here, MANY))).toEqual(all(2 * MANY));
    const guest = await guestOf(network, { dataDir });
    expect(await guest.tries(...at(guest.gateway, 2 * BURST))).toEqual(all(2 * BURST));
    expect(await network.dropped()).toBe(dropped);
    server.hangUp();

    // All of its burst is back after 5 s, so what a machine that was added, or a new start, may forget shows only before that.
    const [again, between] = [await flood(hasty, ONE.here), performance.now()];
    const { id, app, address } = guest;
    const machines = [
      { id, app, address },
      { id: "00000000000002", app, address: network.allocate(new Set([address])) },
    ];
    for (const machine of machines) await network.attach(machine);
    await network.close();
    const next = await open(machines);
    const last = await flood(hasty, ONE.here);
    expect(again.dropped).toBeGreaterThan(0);
    expect(last.accepted).toBeLessThanOrEqual(trickle(again.seconds + (performance.now() - between) / 1000));

    // Ports that are closed are anybody's.
    await next.offer([]);
    expect(await hasty.tries(...at(ONE.here, MANY))).toEqual(all(MANY));
  },
);

test.skipIf(!isRoot)("addresses of one /64 are one client, and proxies in front are none", async () => {
  const { server, network, flood } = await world({ exempt: [`${TWO.there}/32`, "2001:db8:0:99::/64"] });
  const [many, proxy] = [await otherComputer(ONE, [80]), await otherComputer(TWO, [80])];
  for (const address of [SIX.there, SIX.sibling]) await many.ip(`address add ${address}/64 dev out0 nodad`);
  const [cable] = JSON.parse((await ip(`-json address show to ${ONE.here}`)).stdout) as { ifname: string }[];
  await ip(`address add ${SIX.here}/64 dev ${cable?.ifname} nodad`);
  const began = performance.now();
  const first = await flood(many, SIX.here, { as: [SIX.there] });
  expect(first.accepted).toBeLessThanOrEqual(BURST + trickle(first.seconds));
  const second = await flood(many, SIX.here, { as: [SIX.sibling] });
  expect(first.accepted + second.accepted).toBeLessThanOrEqual(BURST + trickle((performance.now() - began) / 1000));

  const dropped = await network.dropped();
  const at = Array.from({ length: MANY }, () => `${TWO.here}:${server.port}`);
  expect(await proxy.tries(...at)).toEqual(at.map(() => "open"));
  expect(await network.dropped()).toBe(dropped);
});

test("the rules keep what was counted, and are none without a limit or a port", () => {
  const names = namesFor("/var/lib/hibernaut");
  const text = clientTable(names, { perSecond: 1000, exempt: ["192.0.2.0/24", "2001:db8::/32"] }, [80, 443]);
  expect(text).not.toContain("delete table");
  expect(text).toContain("tcp dport { 80, 443 } tcp flags & (fin | syn | rst | ack) == syn jump first");
  expect(text).toContain('iifname "lo" accept\n    iifname "hib*" accept');
  expect(text).toContain("{ ip saddr limit rate over 1000/second burst 5000 packets } counter name dropped drop");
  expect(text).toContain("ip saddr 192.0.2.0/24 return\n    ip6 saddr 2001:db8::/32 return\n    update");
  for (const [perSecond, ports] of [
    [0, [80]],
    [1000, []],
  ] as const)
    expect(clientTable(names, { perSecond, exempt: [] }, ports)).not.toContain("chain");
});
