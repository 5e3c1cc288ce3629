/** When the platform looks for machines that may sleep: timers and clock are the test's. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ConnectedProxies } from "../src/connected-proxies.ts";
import { type CoordinatedMachine, withRecord } from "../src/coordinated-machine.ts";
import { SleepScheduler } from "../src/sleep-scheduler.ts";

const IDLE_MS = 5000;
const INTERVAL_MS = 60_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

/** A scheduler of running machines, one of each app, and which of them it put to sleep after how many milliseconds. */
function scheduled(...apps: string[]) {
  const known = new Map<string, CoordinatedMachine>();
  for (const app of apps) {
    const services = [{ internal_port: 8080, autostop: "suspend", idle_timeout: IDLE_MS / 1000 }];
    const record = { id: app, app, state: "running", config: { image: "app:1", services } };
    known.set(
      app,
      withRecord(undefined, record as unknown as MachineRecord, { now: performance.now(), canWait: true }),
    );
  }
  const proxies = new ConnectedProxies();
  const meanwhile: (() => void)[] = [];
  const proxy = proxies.add((message) => {
    if (message.kind !== "drain") return;
    for (const happens of meanwhile) happens();
    proxies.answered(message.question, true);
  });
  const change = (id: string, changes: Partial<MachineRecord>) => {
    const machine = known.get(id) as CoordinatedMachine;
    machine.record = { ...machine.record, ...changes };
  };
  const asleep = new Map<string, number>();
  const sleep = (_app: string, id: string) => {
    asleep.set(id, performance.now());
    change(id, { state: "suspending" });
  };
  const scheduler = new SleepScheduler({
    machines: { sleep, start: () => ({ previousState: "stopped" as const }), disconnect: () => {} },
    commands: { count: () => 0 },
    isDraining: () => false,
    known,
    proxies,
    intervalMs: INTERVAL_MS,
    isUsable: () => true,
    tell: () => {},
    log: { warn: () => {} },
    now: () => performance.now(),
  });
  /** What the coordinator does when a proxy reports a load. */
  const report = (id: string, load: number) => {
    const machine = known.get(id) as CoordinatedMachine;
    proxies.setLoad(proxy, id, { load, requests: load });
    machine.idleSince = performance.now();
    scheduler.loadChanged(machine);
  };
  return { scheduler, asleep, report, change, meanwhile };
}

test.each([10, 50, 150, 250])("requests to one app every %d ms do not keep another app awake", async (everyMs) => {
  const { scheduler, asleep, report } = scheduled("busy", "idle");
  const began = performance.now();
  scheduler.plan();
  for (let times = 0; performance.now() < began + 3 * IDLE_MS; times += 1) {
    report("busy", (times + 1) % 2);
    await vi.advanceTimersByTimeAsync(everyMs);
  }
  expect([...asleep.keys()]).toEqual(["idle"]);
  // Looks are 200 ms apart, and one may come a moment too early.
  expect((asleep.get("idle") ?? 0) - began).toBeLessThan(IDLE_MS + 500);
  await scheduler.close();
});

test("a machine that is cordoned while the proxies are asked about it is left alone", async () => {
  const { scheduler, asleep, change, meanwhile } = scheduled("cordoned", "idle");
  meanwhile.push(() => change("cordoned", { cordoned: true }));
  scheduler.plan();
  await vi.advanceTimersByTimeAsync(INTERVAL_MS);
  expect([...asleep.keys()]).toEqual(["idle"]);
});
