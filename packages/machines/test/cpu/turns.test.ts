/** Machines that compete for the CPUs of a busy host. Real rules, fake hypervisor. */
import { beforeEach, expect, test } from "vitest";
import { CpuTurns, NEW_AGAIN_MS, NEW_MS } from "../../src/cpu/turns.ts";
import { shopForEach } from "../shop.ts";

/** Between two looks, in milliseconds. */
const LOOK_MS = 500;

let busy = 1;
let now = 0;
const shop = shopForEach({ wrap: (deps) => ({ ...deps, hostCpu: { busy: () => 0, count: 2 } }) });
beforeEach(() => {
  [busy, now] = [1, 0];
});

/** A machine that runs, and uses this much of a CPU. */
interface Neighbour {
  id: string;
  use: number;
}

/** Looks at the shop's machines by hand. */
function turnsOfShop(): CpuTurns {
  return new CpuTurns({
    host: { busy: () => busy, count: 2 },
    threadTimes: async (id) => {
      const [process] = shop.host.of(id);
      return process && new Map([[1, { ranMs: process.cpuMs, waitedMs: process.waitedMs }]]);
    },
    comeLast: async (id, last) => {
      const [process] = shop.host.of(id);
      if (process !== undefined) process.comesLast = last;
      return true;
    },
    now: () => now,
  });
}

const isLast = ({ id }: Neighbour) => shop.host.of(id)[0]?.comesLast;

/** Lets time pass until it has been looked at them so often, while each waits for this many CPUs. */
async function pass(turns: CpuTurns, looks: number, neighbours: readonly Neighbour[], waits = 0): Promise<void> {
  for (let look = 0; look < looks; look += 1) {
    now += LOOK_MS;
    for (const { id, use } of neighbours) {
      const [process] = shop.host.of(id);
      if (process !== undefined) process.cpuMs += use * LOOK_MS;
      if (process !== undefined && use > 0) process.waitedMs += waits * LOOK_MS;
    }
    await turns.look();
  }
}

async function settle(turns: CpuTurns, ...uses: number[]): Promise<Neighbour[]> {
  const all: Neighbour[] = [];
  for (const use of uses) all.push({ id: await shop.run(), use });
  for (const { id } of all) turns.follow(shop.record(id));
  turns.close(); // this test looks
  now += NEW_MS;
  return all;
}

test("who uses all comes last while the host is busy, and no longer when it has calmed down", async () => {
  const turns = turnsOfShop();
  const [polite, hungry] = (await settle(turns, 0.05, 0.95)) as [Neighbour, Neighbour];
  await pass(turns, 3, [polite, hungry]);
  expect([isLast(polite), isLast(hungry), turns.last]).toEqual([false, true, 1]);
  busy = 0.5;
  await pass(turns, 4, [polite, hungry]);
  expect([isLast(polite), isLast(hungry), turns.last]).toEqual([false, false, 0]);
});

test("nobody comes before a machine that is new, and it before those that use all", async () => {
  const turns = turnsOfShop();
  const [settled] = (await settle(turns, 0.9)) as [Neighbour];
  const [booting] = (await settle(turns, 0.9)) as [Neighbour];
  now -= 4 * LOOK_MS;
  await pass(turns, 2, [settled, booting]);
  expect([isLast(settled), isLast(booting)]).toEqual([false, false]);
  await pass(turns, 1, [settled, booting]);
  expect([isLast(settled), isLast(booting)]).toEqual([true, false]);
  await pass(turns, 1, [settled, booting]);
  expect([isLast(settled), isLast(booting)], "it has had its time").toEqual([false, false]);
  const record = shop.record(booting.id);
  const again = async () => {
    settled.use = 0.01;
    turns.follow({ ...record, state: "restarting" });
    turns.follow(record);
    turns.close();
    await pass(turns, 6, [settled, booting]);
  };
  await again();
  expect(isLast(booting), "it is not new again when it crashes").toBe(true);
  now += NEW_AGAIN_MS;
  await again();
  expect(isLast(booting)).toBe(false);
});

test("who stops wanting all comes last no longer, and others that do stay", async () => {
  const turns = turnsOfShop();
  const [polite, reformed, hungry] = (await settle(turns, 0.05, 0.9, 0.9)) as [Neighbour, Neighbour, Neighbour];
  await pass(turns, 3, [polite, reformed, hungry]);
  expect([isLast(reformed), isLast(hungry)]).toEqual([true, true]);
  reformed.use = 0.02;
  await pass(turns, 4, [polite, reformed, hungry]);
  expect([isLast(polite), isLast(reformed), isLast(hungry)]).toEqual([false, false, true]);
});

test("one that comes last by mistake, because all wait, is found out", async () => {
  const turns = turnsOfShop();
  const [polite, hungry, hungrier] = (await settle(turns, 0.25, 0.3, 0.35)) as [Neighbour, Neighbour, Neighbour];
  const all = [polite, hungry, hungrier];
  const [idle] = (await settle(turns, 0)) as [Neighbour];
  await pass(turns, 3, [...all, idle], 2);
  expect(all.map(isLast), "all seem to want everything").toEqual([true, true, true]);
  Object.assign(polite, { use: 0.1 });
  await pass(turns, 36, [...all, idle], 2);
  expect(all.map(isLast)).toEqual([true, true, true]);
  await pass(turns, 3, [...all, idle], 0.2);
  expect(all.map(isLast)).toEqual([false, true, true]);
});

test("on a host that is not busy nobody asks what machines use", async () => {
  let asked = 0;
  const turns = new CpuTurns({
    host: { busy: () => 0.3, count: 2 },
    async threadTimes() {
      asked += 1;
      return undefined;
    },
    comeLast: async () => true,
  });
  await settle(turns, 1, 1);
  await turns.look();
  expect(asked).toBe(0);
});

test("nobody comes before a machine that falls asleep, or before the VMM that a platform finds", async () => {
  const turns = turnsOfShop();
  const [polite, hungry] = (await settle(turns, 0.05, 0.95)) as [Neighbour, Neighbour];
  await pass(turns, 3, [polite, hungry]);
  const [process] = shop.host.of(hungry.id);
  const record = shop.record(hungry.id);
  turns.follow({ ...record, state: "suspending" });
  expect(process?.comesLast).toBe(false);
  if (process !== undefined) process.comesLast = true; // as an earlier platform left it
  turns.follow(record);
  turns.close();
  busy = 0;
  await pass(turns, 1, []);
  expect(process?.comesLast).toBe(false);
});

test("where the host does not let the platform, it asks no more; what fails is tried again", async () => {
  const asked: string[] = [];
  const turns = new CpuTurns({
    host: { busy: () => 0, count: 2 },
    threadTimes: async () => undefined,
    comeLast: async (id) => {
      asked.push(id);
      if (id === "fails") throw new Error("no descriptor left");
      return false;
    },
  });
  turns.follow({ id: "forbidden", state: "running" });
  turns.follow({ id: "fails", state: "running" });
  turns.close();
  await turns.look();
  await turns.look();
  expect(asked).toEqual(["forbidden", "fails", "fails"]);
});

test("the platform looks by itself", async () => {
  let looked = 0;
  const turns = new CpuTurns({
    host: {
      busy() {
        looked += 1;
        return 0;
      },
      count: 2,
    },
    threadTimes: async () => undefined,
    comeLast: async () => true,
  });
  turns.follow({ id: "one", state: "running" });
  await expect.poll(() => looked).toBeGreaterThan(0);
  turns.follow({ id: "one", state: "stopped" });
  looked = 0;
  await turns.look();
  expect(looked).toBe(1);
  turns.close();
});
