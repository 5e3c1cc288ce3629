/**
 * The bridge network with real packets between real guests, the host, and a namespace that plays the internet.
 *
 * @module-tag again
 */
import { execFile } from "node:child_process";
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Machine } from "@hibernaut/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { longOr } from "../../platform/test/helpers/long.ts";
import { NOTHING_LEFT, networkOf, Place } from "../../platform/test/helpers/served.ts";
import { namesFor } from "../src/bridge/names.ts";
import { macOf } from "../src/mac.ts";
import { HOST_OUTSIDE, METADATA, OUTSIDE, Outside, PORTS } from "./outside.ts";
import { probeImage } from "./probe/image.ts";
import type { Try } from "./probe/try.ts";

const run = promisify(execFile);
const CLI = join(import.meta.dirname, "../../cli/bin/hibernaut.js");
const isRoot = process.getuid?.() === 0;
const SLEEPS = longOr(20, 2);
/** It takes some 50 ms. A connection that nobody tells of its end lives for many minutes. */
const SOON_MS = 8_000;

interface Seen {
  id: string;
  heard: string[];
  held: { echoed: number; failedAt: number | null; error: string | null };
}

/** A service of the host, open on all addresses or on the loopback only; it echoes after a greeting. */
interface Service {
  server: Server;
  port: number;
  sockets: Set<Socket>;
}

let place: Place;
let outside: Outside;
/** `a` and `b` are of one app; `c` is of another; `absent` is of the first and has never been started. */
let a: Machine, b: Machine, c: Machine, absent: Machine;
let gateway: string;
let apiPort: number, flyPort: number, sandboxPort: number;
let open: Service, local: Service;
/** What the host's sockets heard, as `text from address`: one on all addresses, one on the loopback. */
const heard: string[] = [];
let udp: { open: UdpSocket; local: UdpSocket };

async function serve(host: string, greeting: string): Promise<Service> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => {}).on("close", () => sockets.delete(socket)));
    if (greeting !== "") socket.write(greeting);
    socket.pipe(socket);
  });
  server.listen(0, host);
  await once(server, "listening");
  return { server, port: (server.address() as { port: number }).port, sockets };
}

async function listen(host: string): Promise<UdpSocket> {
  const socket = createSocket("udp4");
  socket.on("message", (text, { address }) => void heard.push(`${String(text)} from ${address}`));
  socket.bind(0, host);
  await once(socket, "listening");
  return socket;
}

const end = ({ server, sockets }: Service) => {
  for (const socket of sockets) socket.destroy();
  server.close();
};

async function machine(app: string, image: string, launch = true): Promise<Machine> {
  const config = { image, services: [{ internal_port: 8080 }] };
  const made = await place.client.createMachine(app, { config, ...(!launch && { skip_launch: true }) });
  if (launch) await place.client.waitForMachine(app, made.machine_id, { state: ["running"], timeout: 120 });
  return place.client.getMachine(app, made.machine_id);
}

/** Runs a script as root in a machine; works whatever it did to its network. */
async function shell(of: Machine, script: string): Promise<string> {
  const app = of === c ? "mail" : place.app;
  const done = await place.client.runExec(app, of.machine_id, { command: ["sh", "-c", script], timeout: 60 });
  if (done.exit_code !== 0) throw new Error(`${script}: ${done.exit_code} ${done.stderr}`);
  return done.stdout;
}

/** Has a machine try things, after a change of its network that is taken back afterwards. */
async function tryAll(
  of: Machine,
  tries: Try[],
  change?: { make: string; undo: string },
): Promise<(string | string[])[]> {
  const ask = `curl -s --unix-socket /run/probe.sock http://machine/try -d '${JSON.stringify(tries)}'`;
  return JSON.parse(await shell(of, change ? `${change.make} && ${ask}; ${change.undo}` : ask));
}

const byText = (one: string, other: string) => one.localeCompare(other);
const unreachable = () => expect.stringMatching(/^(silence|EHOSTUNREACH)$/);

const seen = async ({ private_address: address }: Machine, path = "") =>
  (await (await fetch(`http://${address}:8080/${path}`, { headers: { connection: "close" } })).json()) as Seen;

describe.skipIf(!isRoot)("a bridge", () => {
  beforeAll(async () => {
    const settings = {
      HIBERNAUT_NETWORK: "bridge",
      HIBERNAUT_API_LISTEN: "0.0.0.0:0",
      HIBERNAUT_FLY_LISTEN: "0.0.0.0:0",
      HIBERNAUT_SANDBOX_LISTEN: "0.0.0.0:0",
    };
    let image: string;
    [place, outside, image] = await Promise.all([Place.open(settings), Outside.open(), probeImage()]);
    await place.client.createApp("mail");
    [open, local] = await Promise.all([serve("0.0.0.0", "welcome\r\n"), serve("127.0.0.1", "inside\r\n")]);
    udp = { open: await listen("0.0.0.0"), local: await listen("127.0.0.1") };
    const { apiUrl, flyUrl, sandboxUrl } = place.served;
    [apiPort = 0, flyPort = 0, sandboxPort = 0] = [apiUrl, flyUrl, sandboxUrl].map((url) => Number(new URL(url).port));
    [a, b, c] = await Promise.all([machine("shop", image), machine("shop", image), machine("mail", image)]);
    absent = await machine("shop", image, false);
    gateway = (await shell(a, "ip route show default")).split(" ")[2] ?? "";
  });

  afterAll(async () => {
    try {
      await place?.client.destroyApp("mail", { force: true });
      expect(await place?.close()).toEqual(NOTHING_LEFT);
    } finally {
      for (const service of [open, local]) if (service) end(service);
      for (const socket of Object.values(udp ?? {})) socket.close();
      await outside?.close();
    }
  });

  describe("from a machine", () => {
    /** Who tries what; what it sees; what the far side heard of its datagrams. */
    const matrix: [
      name: string,
      from: () => Machine,
      tries: () => Try,
      expected: () => unknown,
      arrived?: () => unknown,
    ][] = [
      ["its own app's machine: TCP", () => a, () => ["tcp", b.private_address, 8080], () => "HTTP/1.1 200 OK"],
      [
        "its own app's machine: UDP",
        () => a,
        () => ["udp", b.private_address, 9000, "a-b"],
        () => "sent",
        () => hears(b, "a-b", a),
      ],
      ["another app's machine: TCP", () => a, () => ["tcp", c.private_address, 8080], unreachable],
      [
        "another app's machine: UDP",
        () => a,
        () => ["udp", c.private_address, 9000, "a-c"],
        () => "sent",
        () => hears(c, "a-c"),
      ],
      [
        "another app's machine, the other way round",
        () => c,
        () => ["udp", a.private_address, 9000, "c-a"],
        () => "sent",
        () => hears(a, "c-a"),
      ],
      ["a service of the host", () => a, () => ["tcp", gateway, open.port], () => "welcome"],
      [
        "a service of the host, at another address of its",
        () => a,
        () => ["tcp", HOST_OUTSIDE, open.port],
        () => "welcome",
      ],
      [
        "a service of the host: UDP",
        () => a,
        () => ["udp", gateway, udp.open.address().port, "a-host"],
        () => "sent",
        () => hearsHost("a-host", a),
      ],
      ["a service of the host's loopback", () => a, () => ["tcp", gateway, local.port], () => "ECONNREFUSED"],
      ["the API", () => a, () => ["tcp", gateway, apiPort], () => "ECONNREFUSED"],
      ["the API at another address of the host", () => a, () => ["tcp", HOST_OUTSIDE, apiPort], () => "ECONNREFUSED"],
      [
        "the port of Fly's clients, which the system chose",
        () => a,
        () => ["tcp", gateway, flyPort],
        () => "ECONNREFUSED",
      ],
      ["the sandboxes' port, likewise", () => a, () => ["tcp", gateway, sandboxPort], () => "ECONNREFUSED"],
      ["the metadata address", () => a, () => ["tcp", METADATA, PORTS.hello], () => "EHOSTUNREACH"],
      ["the outside, as the host", () => a, () => ["tcp", OUTSIDE, PORTS.hello], () => `hello ${HOST_OUTSIDE}`],
      ["the outside, from another app", () => c, () => ["tcp", OUTSIDE, PORTS.hello], () => `hello ${HOST_OUTSIDE}`],
      [
        "the names of its app's running machines",
        () => a,
        () => ["dns", "shop.internal"],
        () => [a, b].map((one) => one.private_address).toSorted(byText),
      ],
      ["the names of another app's", () => a, () => ["dns", "mail.internal"], () => [c.private_address]],
      [
        "the name of one machine",
        () => a,
        () => ["dns", `${b.machine_id}.vm.shop.internal`],
        () => [b.private_address],
      ],
      ["a name that is not there", () => a, () => ["dns", "nobody.internal"], () => "ENOTFOUND"],
      ["the host's name, from the name server", () => a, () => ["dns", "host.hibernaut.internal"], () => [gateway]],
      ["the host's name, from its hosts file", () => a, () => ["hosts", "host.hibernaut.internal"], () => gateway],
    ];
    const results = new Map<string, unknown>();

    beforeAll(async () => {
      for (const from of [() => a, () => c]) {
        const rows = matrix.filter(([, of]) => of() === from());
        const found = await tryAll(
          from(),
          rows.map(([, , tries]) => tries()),
        );
        for (const [index, [name]] of rows.entries()) results.set(name, found[index]);
      }
    });

    test.each(matrix)("%s", async (name, _from, _tries, expected, arrived) => {
      const found = results.get(name);
      expect(Array.isArray(found) ? found.toSorted(byText) : found).toEqual(expected());
      if (arrived !== undefined) await arrived();
    });
  });

  test("the host itself reaches the API and the metadata address, so it is the rules that keep machines off", async () => {
    expect((await fetch(`http://${HOST_OUTSIDE}:${apiPort}/v1/health`)).status).toBe(200);
    const { stdout } = await run("curl", ["-s", "--max-time", "5", "--http0.9", `http://${METADATA}`]);
    expect(stdout).toContain("hello");
  });

  describe("from outside", () => {
    test("a machine is not reached, nor the name server", async () => {
      expect(await outside.reach("tcp", HOST_OUTSIDE, open.port), "the way in works").toBe("open");
      expect(await outside.reach("tcp", a.private_address, 8080)).toBe("silence");
      expect(await outside.reach("dns", gateway, 53)).toMatch(/^(silence|ETIMEOUT)$/);
    });
  });

  describe("a machine that pretends to be another", () => {
    let eth: string;
    let hostPort: number;
    beforeAll(async () => {
      eth = /dev (\S+)/.exec(await shell(a, "ip route show default"))?.[1] ?? "";
      hostPort = udp.open.address().port;
      // It knows where the host is from now on.
      await tryAll(a, [["tcp", gateway, open.port]]);
    });

    test("by its address is heard by nobody", async () => {
      const forged = absent.private_address;
      const change = (what: string) => `ip address ${what} ${forged}/22 dev ${eth}`;
      const tries: Try[] = [
        ["udp", gateway, hostPort, "forged", forged],
        ["udp", b.private_address, 9000, "forged", forged],
        ["udp", gateway, hostPort, "honest", a.private_address],
        ["udp", b.private_address, 9000, "honest", a.private_address],
      ];
      await shell(a, change("add"));
      try {
        await tryAll(a, tries);
        await hearsHost("honest", a);
        await hears(b, "honest", a);
        await hears(b, "forged");
        expect(heard.join()).not.toContain("forged");
        // Neither announcements nor answers to "who has that address" get through: the sibling finds nobody there.
        expect(await tryAll(b, [["tcp", forged, 8080]])).toEqual([unreachable()]);
        expect(await shell(b, "ip neighbour")).not.toContain(`${forged} dev ${eth} lladdr`);
        expect((await run("ip", ["neighbour", "show", forged])).stdout).not.toContain(macOf(a.machine_id));
      } finally {
        await shell(a, change("delete"));
      }
    });

    test.each(["sibling", "nobody"])(
      "by the MAC address of %s is heard by nobody",
      { tags: "again" },
      async (whose) => {
        const gatewayMac = /lladdr (\S+)/.exec(await shell(a, `ip neighbour show ${gateway}`))?.[1];
        // It knows where everybody is: what is tried is its packets, not whether its questions are answered.
        const wear = (mac: string) =>
          [
            `ip link set dev ${eth} down`,
            `ip link set dev ${eth} address ${mac}`,
            `ip link set dev ${eth} up`,
            `ip route replace default via ${gateway}`,
            `ip neighbour replace ${gateway} lladdr ${gatewayMac} dev ${eth}`,
            `ip neighbour replace ${b.private_address} lladdr ${macOf(b.machine_id)} dev ${eth}`,
          ].join(" && ");
        const tries = (text: string): Try[] => [
          ["udp", gateway, hostPort, text],
          ["udp", b.private_address, 9000, text],
        ];
        const forged = whose === "nobody" ? "02:00:00:00:be:ef" : macOf(b.machine_id);
        await tryAll(a, tries(`as-${whose}`), { make: wear(forged), undo: wear(macOf(a.machine_id)) });
        await tryAll(a, tries(`honest-after-${whose}`));
        await hears(b, `honest-after-${whose}`, a);
        await hearsHost(`honest-after-${whose}`, a);
        await hears(b, `as-${whose}`);
        expect(heard.join()).not.toContain(`as-${whose}`);
        // The sibling is still reached where it is.
        expect((await seen(b)).id).toBe(b.machine_id);
      },
    );

    test("or asks the host to carry its packets to another app is heard by nobody", { tags: "again" }, async () => {
      const route = (what: string) => `ip route ${what} ${a.private_address}/32 via ${gateway}`;
      const change = { make: route("add"), undo: route("delete") };
      expect(await tryAll(c, [["udp", a.private_address, 9000, "carried"]], change)).toEqual(["sent"]);
      await hears(a, "carried");
    });

    test("or aims at the host's loopback is heard by nobody, even where the host routes it", {
      tags: "again",
    }, async () => {
      const { bridge } = namesFor(place.dataDir);
      await writeFile(`/proc/sys/net/ipv4/conf/${bridge}/route_localnet`, "1");
      const change = {
        make: `ip address flush dev lo && ip route add 127.0.0.1/32 via ${gateway} dev ${eth} && echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet`,
        undo: "ip address add 127.0.0.1/8 dev lo",
      };
      await tryAll(c, [["udp", "127.0.0.1", udp.local.address().port, "to-loopback", c.private_address]], change);
      await tryAll(c, [["udp", gateway, hostPort, "to-host"]]);
      await hearsHost("to-host", c);
      expect(heard.join()).not.toContain("to-loopback");
    });
  });

  describe("a connection that is open while its machine sleeps", () => {
    const hold = (host: string, port: number) => seen(a, `hold?host=${host}&port=${port}`);
    const echoed = async () => (await seen(a)).held.echoed;
    const lives = async (before: number) => {
      await expect.poll(echoed, { timeout: 10_000, interval: 50 }).toBeGreaterThan(before);
      expect((await seen(a)).held).toMatchObject({ failedAt: null, error: null });
    };
    /** Sleeps, lets something happen meanwhile, and says how many ms after the wake the app saw its connection fail. */
    const failsAfter = async (meanwhile: () => Promise<unknown>) => {
      await place.suspend(a.machine_id);
      await meanwhile();
      await place.start(a.machine_id);
      const woken = Date.now();
      await expect.poll(async () => (await seen(a)).held.failedAt, { timeout: 10_000, interval: 50 }).not.toBeNull();
      return ((await seen(a)).held.failedAt ?? 0) - woken;
    };

    test(`to a service of the host survives ${SLEEPS} sleeps`, { tags: "again" }, async () => {
      await hold(gateway, open.port);
      for (let cycle = 0; cycle < SLEEPS; cycle += 1) {
        await lives(await echoed());
        await place.suspend(a.machine_id);
        await place.start(a.machine_id);
      }
      await lives(await echoed());
      expect(open.sockets.size).toBe(1);
    });

    test("through NAT survives sleeps, and a change of rules", { tags: "again" }, async () => {
      await hold(OUTSIDE, PORTS.echo);
      await lives(0);
      await place.suspend(a.machine_id);
      const other = await place.client.createApp("extra").then(() => machine("extra", a.config.image, false));
      await place.client.destroyMachine("extra", other.machine_id, { force: true });
      await place.served.stop();
      await place.served.start();
      await place.start(a.machine_id);
      await lives(await echoed());
      await place.client.destroyApp("extra", { force: true });
    });

    test("fails soon after the wake when the host's service closed it", { tags: "again" }, async () => {
      await hold(gateway, open.port);
      await lives(0);
      expect(
        await failsAfter(async () => {
          for (const socket of open.sockets) socket.end();
        }),
      ).toBeLessThan(SOON_MS);
    });

    test("fails soon when the host's service ended", { tags: "again" }, async () => {
      await hold(gateway, open.port);
      await lives(0);
      expect(
        await failsAfter(async () => {
          for (const socket of open.sockets) socket.resetAndDestroy();
        }),
      ).toBeLessThan(SOON_MS);
    });

    test("fails soon when a server outside closed it", { tags: "again" }, async () => {
      await hold(OUTSIDE, PORTS.echo);
      await lives(0);
      expect(await failsAfter(() => outside.closeConnections())).toBeLessThan(SOON_MS);
    });

    test("fails soon when the host no longer knows how it was translated", { tags: "again" }, async () => {
      await hold(OUTSIDE, PORTS.echo);
      await lives(0);
      const flap = async () => {
        await outside.unplug();
        await outside.plugIn();
      };
      expect(await failsAfter(flap)).toBeLessThan(SOON_MS);
    });
  });

  describe("what is there", { tags: "again" }, () => {
    const present = async () => (await networkOf(place.dataDir)).sort();

    test("is a bridge, four tables, and a tap for each machine, asleep or not", async () => {
      const { bridge, table, flowTable, clientTable } = namesFor(place.dataDir);
      const before = await present();
      expect(before).toHaveLength(5 + 4);
      const own = [table, flowTable, clientTable].map((name) => `table inet ${name}`);
      const tables = [`table bridge ${table}`, ...own];
      expect(before).toEqual(expect.arrayContaining([bridge, ...tables]));
      await place.suspend(b.machine_id);
      expect(await present()).toEqual(before);
    });

    test("comes back when someone flushes the firewall", async () => {
      const { table } = namesFor(place.dataDir);
      const before = await present();
      await run("nft", ["delete", "table", "bridge", table]);
      await expect.poll(present, { timeout: 20_000 }).toEqual(before);
    });

    test("is made again after a crash and a reboot of the host; a machine wakes with the same address", async () => {
      await place.suspend(a.machine_id);
      const before = await present();
      await place.served.kill();
      const { bridge, tapPrefix } = namesFor(place.dataDir);
      const taps = before.filter((name) => name.startsWith(tapPrefix));
      // That of `c` is left: its guest still runs. And one of nobody's, as a crash may leave it.
      const gone = taps.filter((tap) => !tap.endsWith(hostNumber(c)));
      for (const name of [...gone, bridge]) await run("ip", ["link", "delete", "dev", name]);
      await run("nft", ["delete", "table", "inet", namesFor(place.dataDir).table]);
      await run("ip", ["tuntap", "add", "dev", `${tapPrefix}1000`, "mode", "tap"]);
      await place.served.start();
      expect(await present()).toEqual(before);
      await place.start(a.machine_id);
      expect((await seen(a)).id).toBe(a.machine_id);
      expect((await seen(c)).id, "the guest that ran through it").toBe(c.machine_id);
      expect(await tryAll(a, [["tcp", OUTSIDE, PORTS.hello]])).toEqual([`hello ${HOST_OUTSIDE}`]);
    });

    test("vanishes with `hibernaut uninstall`, which does nothing while the platform runs; the sleeping wake after it", async () => {
      const env = { ...process.env, HIBERNAUT_DATA_DIR: place.dataDir, XDG_CONFIG_HOME: join(place.dataDir, "cfg") };
      const uninstall = () => run(process.execPath, [CLI, "uninstall", "--json"], { env });
      await expect(uninstall()).rejects.toMatchObject({ stderr: expect.stringContaining("Another platform is using") });
      await place.suspend(a.machine_id);
      await place.served.stop();
      expect(JSON.parse((await uninstall()).stdout)).toMatchObject({ guests_ended: 1, data_deleted: false });
      expect(await present()).toEqual([]);
      await place.served.start();
      await place.start(a.machine_id);
      expect((await place.get(a.machine_id)).last_boot).toMatchObject({ kind: "resume" });
      expect((await seen(a)).id).toBe(a.machine_id);
    });
  });
});

/** Waits until a machine heard a datagram from another; without one, makes sure that it never did. */
async function hears(of: Machine, text: string, from?: Machine): Promise<void> {
  const lines = async () => (await seen(of)).heard.filter((line) => line.startsWith(`${text} `));
  if (from === undefined) expect(await lines()).toEqual([]);
  else await expect.poll(lines, { timeout: 5000 }).toContain(`${text} from ${from.private_address}`);
}

async function hearsHost(text: string, from: Machine): Promise<void> {
  await expect.poll(() => heard, { timeout: 5000 }).toContain(`${text} from ${from.private_address}`);
}

/** How the name of a machine's tap ends. */
function hostNumber({ private_address: address }: Machine): string {
  const [, , third = 0, fourth = 0] = address.split(".").map(Number);
  return `t${(third % 4) * 256 + fourth}`;
}
