/** Apps that listen where no request arrives: what is reported about them, and when. */
import { describe, expect, test, vi } from "vitest";
import { decodeListeners, encodeListeners, type Listener, listenerText } from "../../guest/src/listening.ts";
import { Reachability, whyUnreachable } from "../src/reachability.ts";
import { shopForEach } from "./shop.ts";

const at = (address: string, port: number): Listener => ({ address, port });

describe("where an app listens, as reported by the guest", () => {
  test.each<[string, Listener[]]>([
    ["IPv4 and IPv6", [at("127.0.0.1", 4000), at("0.0.0.0", 80), at("::", 65_535), at("::1", 1)]],
    ["nothing", []],
  ])("%s", (_what, listeners) => {
    expect(decodeListeners(encodeListeners(listeners))).toEqual(listeners);
  });

  test.each([
    ["00000000000000000000ffff7f000001", "::ffff:127.0.0.1"],
    ["fe800000000000000000000000000001", "fe80::1"],
    ["20010db8000000010000000000000000", "2001:db8:0:1::"],
    ["20010db8000000010002000300040005", "2001:db8:0:1:2:3:4:5"],
  ])("%s is %s", (hex, address) => {
    const payload = Buffer.concat([Buffer.from([6, 80, 0]), Buffer.from(hex, "hex")]);
    expect(decodeListeners(payload)).toEqual([{ address, port: 80 }]);
    expect(listenerText({ address, port: 80 })).toBe(`[${address}]:80`);
  });

  test("bytes after the last complete listener are ignored", () => {
    expect(decodeListeners(Buffer.concat([encodeListeners([at("0.0.0.0", 80)]), Buffer.alloc(18)]))).toHaveLength(1);
  });
});

describe("why requests do not reach an app", () => {
  test.each<[string, number[], Listener[], RegExp | undefined]>([
    ["it listens where it should", [8080], [at("0.0.0.0", 8080)], undefined],
    ["on the machine's own address", [8080], [at("10.0.2.15", 8080)], undefined],
    ["on IPv6, which takes IPv4 too", [8080], [at("::", 8080)], undefined],
    ["on loopback, and elsewhere as well", [8080], [at("127.0.0.1", 8080), at("10.0.2.15", 8080)], undefined],
    ["nothing listens yet", [8080], [], undefined],
    ["no service, nothing to reach", [], [at("127.0.0.1", 8080)], undefined],
    ["one of two ports is not open yet", [80, 81], [at("0.0.0.0", 80)], undefined],
    ["loopback only", [80], [at("127.0.0.1", 80)], /listens on 127\.0\.0\.1:80 only.*have it listen on 0\.0\.0\.0:80$/],
    ["IPv6 loopback only", [80], [at("::1", 80)], /listens on \[::1\]:80 only/],
    ["another port", [9999], [at("0.0.0.0", 4000)], /port 9999.*listens on 0\.0\.0\.0:4000/],
    [
      "several others",
      [9],
      [at("0.0.0.0", 4), at("::", 4), at("::1", 5)],
      /on 0\.0\.0\.0:4, \[::\]:4 and \[::1\]:5: name the one/,
    ],
    [
      "another port, on loopback only: the port alone would not help",
      [8080],
      [at("127.0.0.1", 3000)],
      /on 127\.0\.0\.1:3000 only.*on 0\.0\.0\.0:8080, or have it listen on 0\.0\.0\.0:3000 and name 3000/,
    ],
    ["the second of two on loopback", [80, 81], [at("::", 80), at("127.0.0.1", 81)], /127\.0\.0\.1:81 only/],
  ])("%s", (_what, ports, listeners, why) => {
    const found = whyUnreachable(ports, listeners)?.why;
    if (why === undefined) expect(found).toBeUndefined();
    else expect(found).toMatch(why);
  });
});

test("an app that moves its listener all the time is told at once at first, and later every ten seconds at most", () => {
  vi.useFakeTimers();
  try {
    const told: (string | undefined)[] = [];
    const reachability = new Reachability([80], (why) => told.push(why));
    const moveFor = (ms: number) => {
      reachability.listening([at("127.0.0.1", 80)]);
      vi.advanceTimersByTime(ms);
      const count = told.length;
      reachability.ready();
      return told.length - count;
    };
    expect(moveFor(1_000), "it was told, and so is its end").toBe(1);
    for (let round = 0; round < 10; round += 1) moveFor(10_000);
    expect(told).toHaveLength(22);
    expect(moveFor(9_999)).toBe(0);
    expect(told, "too short to be told").toHaveLength(22);
    expect(moveFor(10_000)).toBe(1);
    expect(told.at(-1)).toBeUndefined();
  } finally {
    vi.useRealTimers();
  }
});

describe("a machine whose app listens elsewhere", () => {
  const shop = shopForEach({ settings: { readyTimeoutMs: 30_000 } });
  const LOOPBACK = /listens on 127\.0\.0\.1:8080 only/;

  async function onLoopback(): Promise<string> {
    const id = await shop.create();
    shop.host.listening.set(id, [at("127.0.0.1", 8080)]);
    await shop.start(id);
    return id;
  }

  test("runs, with the reason, long before the ready timeout", async () => {
    const id = await onLoopback();
    expect(shop.record(id).unreachable).toMatch(LOOPBACK);
    expect(shop.record(id).stateReason).toBe(shop.record(id).unreachable);
    const [started] = shop.events(id);
    expect(started?.details.warning).toMatch(LOOPBACK);
  });

  test("is healthy again as soon as it listens where it should", async () => {
    const id = await onLoopback();
    const shown = () => shop.machines.get("shop", id).listening;
    expect(shown(), "where it listens is shown").toEqual([at("127.0.0.1", 8080)]);
    const told = new Promise((resolve) => shop.machines.subscribe("waiting", resolve));
    shop.host.guest(id)?.listen();
    await told;
    expect(shop.record(id)).toMatchObject({ stateReason: null, unreachable: null });
    expect(shown()).toBeUndefined();
  });

  test("a new reason replaces the first one", async () => {
    const id = await onLoopback();
    const told = new Promise((resolve) => shop.machines.subscribe("waiting", resolve));
    shop.host.guest(id)?.listen([at("::1", 8080)]);
    await told;
    expect(shop.record(id).unreachable).toMatch(/\[::1\]:8080 only/);
  });

  test("reports it again after a suspend, and with the next platform", async () => {
    const id = await onLoopback();
    await shop.suspend(id);
    await shop.start(id);
    await expect.poll(() => shop.record(id).unreachable, { timeout: 5000 }).toMatch(LOOPBACK);
    await shop.restart();
    expect(shop.record(id).unreachable).toMatch(LOOPBACK);
    shop.host.guest(id)?.listen();
    await expect.poll(() => shop.record(id).unreachable).toBeNull();
  });

  test("an app that opens its ports one after the other is never reported", async () => {
    const id = await shop.create();
    shop.host.listening.set(id, [at("127.0.0.1", 8080)]);
    shop.machines.start("shop", id);
    await expect.poll(() => shop.host.guest(id)?.state.phase).toBe(1);
    shop.host.guest(id)?.listen();
    await shop.reach(id, "running");
    expect(shop.record(id).stateReason).toBeNull();
  });
});
