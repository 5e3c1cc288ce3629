/** TCP connections through the proxy: what is kept of them, what a client notices, and which ports are open. */
import { once } from "node:events";
import { connect, createServer, Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { type Lease, ProxyRefusal, type RequestHead } from "../../src/contract.ts";
import { placesOf } from "../../src/tcp/fronts.ts";
import { portOwners, tcpPortsOf } from "../../src/tcp/ports.ts";
import { plain, say, type TcpRig, tcpRig } from "./tcp-rig.ts";

const HOST = "127.0.0.1";

let rig: TcpRig;
/** The program's ends of all connections. */
let accepted: Socket[];
/** The lease that a connection gets, or what its client gets instead. */
let machine: (head: RequestHead, lease: () => Lease) => Lease | undefined;
let waiting: PromiseWithResolvers<Lease>;
let warned: string[];
/** How often it was told that other ports are closed. */
let told: number;
/** Apps to which the test's clients are strangers. */
let strangers: Set<string>;

beforeEach(async () => {
  [accepted, warned, told, strangers, waiting] = [[], [], 0, new Set(), Promise.withResolvers()];
  machine = (_head, lease) => lease();
  rig = await tcpRig({
    apps: { db: { serve: (socket) => void accepted.push(socket) } },
    leaseNow: (...asked) => machine(...asked),
    waitFor: waiting.promise,
    more: {
      isStranger: (_address, name) => strangers.has(name),
      log: { warn: (_fields, message) => void warned.push(message) },
      onClosed: () => void (told += 1),
    },
  });
});
// The timers of a test that moved them are real again.
afterEach(() => void vi.useRealTimers());

/** An app that takes connections as they are. */
function owned(name: string) {
  return new Map([[name, undefined]]);
}

const client = () => plain(rig.port);

/** Lets an attempt to open a port end, which takes the event loop a few turns: the test itself moves the timers. */
async function turns(): Promise<void> {
  for (let count = 0; count < 20; count += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** The program's end of the newest connection. */
async function programs(): Promise<Socket> {
  await vi.waitFor(() => expect(accepted.length).toBeGreaterThan(0));
  return accepted.at(-1) as Socket;
}

describe("a client", () => {
  test("is asked now and then whether it is still there, unless it is a machine, which may sleep", async () => {
    const asked = vi.spyOn(Socket.prototype, "setKeepAlive");
    await client();
    await programs();
    await vi.waitFor(() => expect(asked).toHaveBeenCalledWith(true, 60_000));
    asked.mockClear();
    const inside = await tcpRig({ apps: { db: {} }, machines: { web: [HOST] } });
    const here = await plain(inside.port);
    expect(await say(here, "first")).toBe("db first");
    expect(asked).not.toHaveBeenCalled();
    const closed = new Promise((resolve) => void here.on("error", () => {}).once("close", resolve));
    inside.fronts.forget("another", true);
    expect(await say(here, "second")).toBe("db second");
    inside.fronts.forget(`machine ${HOST}`, false);
    expect(await say(here, "after its sleep")).toBe("db after its sleep");
    inside.fronts.forget(`machine ${HOST}`, true);
    await closed;
  });
});

describe("a connection", () => {
  test("carries both directions, and either side may end its own first", async () => {
    const here = await client();
    const there = await programs();
    here.end("all that the client says");
    expect(await text(there)).toBe("all that the client says");
    there.end("the answer comes after the client's end");
    expect(await text(here)).toBe("the answer comes after the client's end");
    await vi.waitFor(() => expect(rig.log).toHaveLength(1));
    expect(rig.log[0]).toMatchObject({
      method: "TCP",
      target: `:${rig.port}`,
      bytesIn: 24,
      bytesOut: 39,
      machineId: "db-1",
    });
    expect(rig.log[0]?.error).toBeUndefined();
    expect([rig.released(), rig.heads[0]?.tcpPort]).toEqual([1, rig.port]);
  });

  test("gets a greeting from a program that speaks first", async () => {
    const here = await client();
    (await programs()).write("220 ready\r\n");
    expect(String(await once(here, "data"))).toBe("220 ready\r\n");
    here.destroy();
  });

  test("waits while its machine wakes, and nothing of what it sent meanwhile is lost", async () => {
    machine = () => undefined;
    const here = await client();
    const sent = Buffer.alloc(1024 * 1024, "x");
    here.end(sent);
    await vi.waitFor(() => expect(rig.heads).toHaveLength(1));
    waiting.resolve(rig.lease());
    const there = await programs();
    expect((await text(there)).length).toBe(sent.length);
    there.end();
    await once(here.resume(), "close");
  });

  test("that ended its side while it waited gets its answer", async () => {
    machine = () => undefined;
    const here = await client();
    here.end("one question");
    await vi.waitFor(() => expect(rig.heads).toHaveLength(1));
    // Its end has arrived, too.
    await new Promise((resolve) => setImmediate(resolve));
    waiting.resolve(rig.lease());
    const there = await programs();
    expect(await text(there)).toBe("one question");
    there.end("one answer");
    expect(await text(here)).toBe("one answer");
  });

  test("that breaks off on one side breaks off on the other", async () => {
    const here = await client();
    const there = await programs();
    const broken = once(here.resume(), "error");
    there.resetAndDestroy();
    expect((await broken)[0]).toMatchObject({ code: "ECONNRESET" });
    await vi.waitFor(() => expect(rig.released()).toBe(1));
    const again = await client();
    await vi.waitFor(() => expect(accepted).toHaveLength(2));
    const torn = once((await programs()).resume(), "error");
    again.resetAndDestroy();
    expect((await torn)[0]).toMatchObject({ code: "ECONNRESET" });
    await vi.waitFor(() => expect(rig.log.map(({ error }) => error)).toEqual(["upstream_broke", "client_gone"]));
  });

  test("is cut off when no machine can take it, and the log has the code", async () => {
    machine = () => {
      throw new ProxyRefusal(503, "no_machine", "There is none.");
    };
    const here = connect({ host: HOST, port: rig.port });
    const [error] = (await once(here, "error")) as [NodeJS.ErrnoException];
    expect(error.code).toBe("ECONNRESET");
    await vi.waitFor(() => expect(rig.log[0]).toMatchObject({ error: "no_machine", machineId: undefined }));
  });

  test("goes to another machine if one does not answer, and is cut off after the third", async () => {
    const deaf = await freePort();
    machine = (_head, lease) => ({ ...lease(), port: deaf, machineId: `deaf-${rig.heads.length}` });
    const here = connect({ host: HOST, port: rig.port });
    expect((await once(here, "error"))[0]).toMatchObject({ code: "ECONNRESET" });
    expect(rig.heads.map(({ tried }) => tried)).toEqual([[], ["deaf-1"], ["deaf-1", "deaf-2"]]);
    await vi.waitFor(() => expect(rig.log[0]).toMatchObject({ error: "upstream_unreachable" }));
    expect(rig.released()).toBe(3);
    machine = ({ tried }, lease) => (tried.length === 0 ? { ...lease(), port: deaf } : lease());
    const second = await client();
    const there = await programs();
    there.end("the second machine");
    expect(await text(second)).toBe("the second machine");
    second.destroy();
  });

  test("whose client leaves while it waits is forgotten", async () => {
    machine = () => undefined;
    const here = await client();
    await vi.waitFor(() => expect(rig.heads).toHaveLength(1));
    here.resetAndDestroy();
    await vi.waitFor(() => expect(rig.log[0]).toMatchObject({ error: "client_gone" }));
  });

  test("to a machine whose guest has ended is broken at once", async () => {
    const here = await client();
    await programs();
    const broken = once(here.resume(), "error");
    rig.fronts.forget("another", true);
    rig.fronts.forget("db-1", false);
    rig.fronts.forget("db-1", true);
    const [error] = (await broken) as [NodeJS.ErrnoException];
    expect(error.code).toBe("ECONNRESET");
  });
});

describe("the ports", () => {
  test("are open at each address, and closed to machines of other apps", async () => {
    rig.fronts.update(placesOf(new Map([[rig.port, owned("db")]]), [HOST, "127.0.0.2"]));
    await vi.waitFor(() => expect(rig.fronts.ports).toEqual([rig.port, rig.port]));
    const inside = connect({ host: "127.0.0.2", port: rig.port });
    await once(inside, "connect");
    inside.destroy();
    strangers.add("db");
    const refused = connect({ host: "127.0.0.2", port: rig.port });
    expect((await once(refused, "error"))[0]).toMatchObject({ code: "ECONNRESET" });
    rig.fronts.update(placesOf(new Map([[rig.port, owned("db")]]), [HOST]));
    await vi.waitFor(() => expect(rig.fronts.ports).toEqual([rig.port]));
  });

  test("open and close with their services; connections outlive the port", async () => {
    const here = await client();
    const there = await programs();
    rig.fronts.update(placesOf(new Map(), [HOST]));
    await expect(client()).rejects.toMatchObject({ code: "ECONNREFUSED" });
    here.write("still here");
    expect(String(await once(there, "data"))).toBe("still here");
    rig.fronts.update(placesOf(new Map([[rig.port, owned("db")]]), [HOST]));
    await vi.waitFor(() => expect(rig.fronts.ports).toEqual([rig.port]));
    here.destroy();
    (await client()).destroy();
  });

  test("that another program has are reported, and do not disturb the others", async () => {
    const taken = await freePort();
    const other = createServer().listen(taken, HOST);
    await once(other, "listening");
    const owners = new Map([
      [rig.port, owned("db")],
      [taken, owned("mail")],
    ]);
    // Only the pauses between the attempts: the ports are real.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    rig.fronts.update(placesOf(owners, [HOST]));
    await turns();
    expect(warned).toEqual([expect.stringContaining(`TCP port ${taken} cannot be opened`)]);
    expect(rig.fronts.ports).toEqual([rig.port]);
    expect(rig.fronts.closed).toEqual(new Map([[taken, expect.stringContaining("EADDRINUSE")]]));
    // It is tried again for 3 minutes. A service of the host that is away for longer keeps its port.
    for (let pause = 0; pause < 36; pause += 1) {
      expect(vi.getTimerCount()).toBe(1);
      vi.advanceTimersByTime(5_000);
      await turns();
    }
    expect(vi.getTimerCount()).toBe(0);
    other.close();
    await once(other, "close");
    rig.fronts.update(placesOf(owners, [HOST]), () => false);
    expect([vi.getTimerCount(), rig.fronts.ports, rig.fronts.closed.size]).toEqual([0, [rig.port], 1]);
    rig.fronts.update(placesOf(owners, [HOST]), (each) => each === taken);
    await turns();
    expect([rig.fronts.ports, rig.fronts.closed.size]).toEqual([[rig.port, taken], 0]);
    expect(warned).toHaveLength(1);
    expect(told).toBe(2);
  });

  test("that another program has open once it gives them up in time", async () => {
    const taken = await freePort();
    const other = createServer().listen(taken, HOST);
    await once(other, "listening");
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    rig.fronts.update(placesOf(new Map([[taken, owned("mail")]]), [HOST]));
    await turns();
    other.close();
    await once(other, "close");
    vi.advanceTimersByTime(5_000);
    await turns();
    expect(rig.fronts.ports).toEqual([taken]);
    // One that nobody claims any more is not closed, but forgotten.
    rig.fronts.update(placesOf(new Map(), [HOST]));
    expect(rig.fronts.closed.size).toBe(0);
  });

  test("close with the proxy: what is quiet is cut off, what moves has its time", async () => {
    const here = await client();
    await programs();
    const gone = once(here.resume(), "end");
    await rig.fronts.close(60_000);
    await gone;
    here.destroy();
  });

  test("are those of TCP services", () => {
    const services = [
      { internal_port: 80, protocol: "http" as const },
      { internal_port: 5432, ports: [{ port: 5432 }, { port: 6432 }] },
    ];
    const tcp = tcpPortsOf({ services });
    expect(tcp).toEqual([
      { port: 5432, internal: 5432 },
      { port: 6432, internal: 5432 },
    ]);
    expect(portOwners([{ row: { app: "db", tcp } }, { row: { app: "web" } }])).toEqual(
      new Map([
        [5432, owned("db")],
        [6432, owned("db")],
      ]),
    );
  });
});
