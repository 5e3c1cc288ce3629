/** The platform is killed at every step of a life with a pool and a restore: nobody is half, twice, or without a memory. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
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
  taken: string[];
}

/** The pool of the template is not being filled any more. */
const full = ({ templates }: Pick<Resources, "templates">) =>
  vi.waitFor(() => {
    const { size, ready, reason } = templates.get("shop", "ready").pool;
    expect([ready, reason]).toEqual([size, null]);
  }, TIMEOUT.timeoutMs);

async function life(
  { machines, apps, templates, restores }: Resources,
  host: World["host"],
  seen: Seen,
): Promise<void> {
  apps.create("shop");
  const { id } = (await machines.create("shop", { name: "one", config: SMALL })).record;
  await machines.wait("shop", id, ["running"], TIMEOUT);
  seen.nonce = host.guest(id)?.request()?.nonce ?? "";
  await templates.createOf("shop", { machine: id, name: "ready", warmPool: 1 }, never);
  seen.id = id;
  await full({ templates });
  const { record } = await templates.bear("shop", "ready", {}, never);
  seen.taken.push(record.id);
  await machines.wait("shop", record.id, ["running"], TIMEOUT);
  await full({ templates });
  host.guest(id)?.request();
  await restores.restore("shop", id, { template: "ready" }, never);
  await machines.wait("shop", id, ["running"], TIMEOUT);
}

async function liveUntilDeath(mortality: Mortality): Promise<Seen> {
  world = await newWorld();
  const seen: Seen = { taken: [] };
  const platform = await startPlatform(world, { wrap: (deps) => mortality.wrap(deps), settings: { keepWarmS: 0 } });
  await untilDeath(mortality, life(platform, world.host, seen));
  return seen;
}

const rehearsal = new Mortality();
await liveUntilDeath(rehearsal);
await world?.dispose();
const all = stepsOf(rehearsal);
// Births and templates have their own such life.
const begin = all.findIndex(({ name }) => name === "templates.insert");
const steps = all.slice(begin);

test("the rehearsal covers pool and restore", () => {
  expect(steps.map(({ name }) => name)).toEqual(expect.arrayContaining(["seeds.deliver", "seeds.replace"]));
});

async function dieAndRecover(step: number, when: "before" | "after"): Promise<void> {
  const { id, nonce, taken } = await liveUntilDeath(new Mortality(step, when));
  if (world === undefined) throw new Error("no world");
  const { host, store, folder } = world;
  const platform = await startPlatform(world);
  try {
    const { machines } = platform;
    if (id !== undefined) await full(platform);
    const visible = machines.list("shop").map(({ record }) => record.id);
    expect(visible).toEqual(expect.arrayContaining(taken));
    for (const one of visible) {
      await machines.wait("shop", one, ["settled"], TIMEOUT);
      machines.start("shop", one);
      await machines.wait("shop", one, ["running"], TIMEOUT);
      expect(host.guest(one)).toMatchObject({ foreign: false, quiet: false, state: { hostname: one } });
      // As it was, or as the template has it: never from scratch.
      const { nonce: now, count = 0 } = host.guest(one)?.request() ?? {};
      expect(now).toBe(nonce);
      expect(one === id ? [2, 3] : [2]).toContain(count);
    }
    const known = store.machines.list().map((record) => record.id);
    expect(readdirSync(join(folder, "machines")).toSorted()).toEqual(known.toSorted());
    expect(readdirSync(join(folder, "templates")).filter((name) => name.startsWith("tmp-"))).toEqual([]);
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
