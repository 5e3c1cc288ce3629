/** The platform is killed at every step of forks and templates: no half machine, no half template, and nobody is lost. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { newWorld, SMALL, startPlatform, type World } from "../../platform/test/helpers/fake-world.ts";
import { Mortality } from "../../platform/test/helpers/mortal.ts";
import type { Resources } from "../src/open.ts";
import { firstOfEach, stepsOf, untilDeath } from "./until-death.ts";

const TIMEOUT = { timeoutMs: 5000 };
const never = new AbortController().signal;
let world: World | undefined;

afterEach(async () => {
  await world?.dispose();
  world = undefined;
});

/** What a user knows when the platform dies. */
interface Seen {
  id?: string;
  nonce?: string;
  born: string[];
  templates: string[];
}

/** One life with every kind of birth in it. */
async function life({ machines, apps, forks, templates }: Resources, host: World["host"], seen: Seen): Promise<void> {
  const reach = (id: string, state: "running" | "suspended" | "destroyed") =>
    machines.wait("shop", id, [state], TIMEOUT);
  const grownUp = async (views: { record: { id: string } }[]) => {
    for (const { record } of views) {
      seen.born.push(record.id);
      await reach(record.id, "running");
    }
  };
  apps.create("shop");
  const { id } = (await machines.create("shop", { name: "one", config: SMALL })).record;
  await reach(id, "running");
  seen.id = id;
  const nonce = host.guest(id)?.request()?.nonce;
  if (nonce !== undefined) seen.nonce = nonce;
  await grownUp(await forks.fork("shop", id, { count: 2, name: "two" }, never));
  machines.suspend("shop", id);
  await reach(id, "suspended");
  await grownUp(await forks.fork("shop", id, { count: 1 }, never));
  seen.templates.push((await templates.createOf("shop", { machine: id, name: "asleep" }, never)).template.id);
  machines.start("shop", id);
  await reach(id, "running");
  seen.templates.push((await templates.createOf("shop", { machine: id, name: "awake" }, never)).template.id);
  await grownUp([await templates.bear("shop", "asleep", {}, never)]);
  await grownUp([await templates.bear("shop", "awake", {}, never)]);
  await grownUp(await forks.fork("shop", seen.born[0] ?? "", { count: 1 }, never));
  seen.templates.shift();
  await templates.delete("shop", "asleep");
}

async function liveUntilDeath(mortality: Mortality): Promise<Seen> {
  world = await newWorld();
  const seen: Seen = { born: [], templates: [] };
  const platform = await startPlatform(world, { wrap: (deps) => mortality.wrap(deps), settings: { keepWarmS: 0 } });
  await untilDeath(mortality, life(platform, world.host, seen));
  return seen;
}

const rehearsal = new Mortality();
await liveUntilDeath(rehearsal);
await world?.dispose();
const steps = stepsOf(rehearsal);

test("the rehearsal covers the births", () => {
  const names = ["snapshots.inherit", "seeds.deliver", "seeds.publish", "snapshots.captureCopy", "templates.insert"];
  expect(steps.map(({ name }) => name)).toEqual(expect.arrayContaining([...names, "templates.remove"]));
});

async function dieAndRecover(step: number, when: "before" | "after"): Promise<void> {
  const seen = await liveUntilDeath(new Mortality(step, when));
  if (world === undefined) throw new Error("no world");
  const { host, store, folder } = world;
  const platform = await startPlatform(world);
  const { machines, templates } = platform;
  try {
    const stored = store.machines.list();
    for (const { id } of stored) {
      await machines.wait("shop", id, ["settled"], TIMEOUT);
      machines.start("shop", id);
      await machines.wait("shop", id, ["running"], TIMEOUT);
      const guest = host.guest(id);
      // Parent or fork: it has the memory, is itself, and is not left frozen.
      expect(guest?.foreign).toBe(false);
      expect(guest?.quiet).toBe(false);
      const answer = guest?.request();
      expect(answer).toBeDefined();
      if (seen.nonce !== undefined) expect(answer?.nonce).toBe(seen.nonce);
    }
    expect(stored.map(({ id }) => id)).toEqual(expect.arrayContaining(seen.born));
    const kept = store.templates.list().map(({ id }) => id);
    expect(kept).toEqual(expect.arrayContaining(seen.templates));
    for (const id of kept) {
      const { record } = await templates.bear("shop", id, {}, never);
      await machines.wait("shop", record.id, ["running"], TIMEOUT);
      expect(host.guest(record.id)?.request()?.nonce).toBe(seen.nonce);
    }
    const root = join(folder, "templates");
    const left = existsSync(root) ? readdirSync(root) : [];
    expect(left.filter((name) => name !== "births").toSorted()).toEqual(kept.toSorted());
    if (left.includes("births")) expect(readdirSync(join(root, "births"))).toEqual([]);
    expect(readdirSync(join(folder, "machines")).toSorted()).toEqual(
      store.machines
        .list()
        .map(({ id }) => id)
        .toSorted(),
    );
    expect(host.mostPerMachine).toBeLessThanOrEqual(1);
    expect(new Set(host.restored).size).toBe(host.restored.length);
  } finally {
    await platform.close();
  }
}

const { first, others } = firstOfEach(steps);

test.each(first)("killed before step $step, $name", ({ step }) => dieAndRecover(step, "before"));

// kill.test.ts has every step of a life. After one step is mostly before the next.
describe("killed at every other step", { tags: "again" }, () => {
  test.each(others)("before step $step, $name", ({ step }) => dieAndRecover(step, "before"));
  test.each(steps)("after step $step, $name", ({ step }) => dieAndRecover(step, "after"));
});
