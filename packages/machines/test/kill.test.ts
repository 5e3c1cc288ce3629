/** The platform is killed at every step of a machine's life, and nothing is ever lost. */
import { join } from "node:path";
import { isResting } from "@hibernaut/domain/machine";
import { afterEach, describe, expect, test, vi } from "vitest";
import { expectWhole } from "../../metering/test/ledger.ts";
import { newWorld, SMALL, startPlatform, type World } from "../../platform/test/helpers/fake-world.ts";
import { longOr } from "../../platform/test/helpers/long.ts";
import { Mortality } from "../../platform/test/helpers/mortal.ts";
import type { Resources } from "../src/open.ts";
import { stepsOf, untilDeath } from "./until-death.ts";

const KEEP_WARM_S = 300;
const TIMEOUT = { timeoutMs: 5000 };
/** With a volume, which stays the same for the whole life. */
const KEEPING = { ...SMALL, mounts: [{ volume: "data", path: "/data" }] };
let world: World | undefined;

afterEach(async () => {
  await world?.dispose();
  world = undefined;
});

/** One life with every kind of work in it. `seen` is what a user knows when the platform dies. */
async function life(
  platform: Resources,
  host: World["host"],
  seen: { id?: string; nonce?: string; updated?: boolean },
): Promise<void> {
  const { machines } = platform;
  platform.apps.create("shop");
  const { record } = await machines.create("shop", { name: "one", config: KEEPING });
  seen.id = record.id;
  const reach = (state: "running" | "suspended" | "stopped" | "destroyed" | "prewarmed") =>
    machines.wait("shop", record.id, [state], TIMEOUT);
  const remember = () => {
    const nonce = host.guest(record.id)?.request()?.nonce;
    if (nonce !== undefined) seen.nonce = nonce;
  };
  await reach("running");
  remember();
  machines.suspend("shop", record.id);
  await reach("suspended");
  machines.start("shop", record.id);
  await reach("running");
  platform.drain.begin({ suspend: true });
  await reach("suspended");
  platform.drain.end();
  await reach("running");
  delete seen.nonce;
  seen.updated = true;
  await machines.update("shop", record.id, { ...KEEPING, image: "app:2" });
  await reach("running");
  machines.stop("shop", record.id);
  await reach("stopped");
  machines.start("shop", record.id);
  await reach("running");
  machines.suspend("shop", record.id);
  await reach("suspended");
  platform.secrets.set("shop", { API_KEY: "new" });
  await reach("suspended");
  await machines.update("shop", record.id, KEEPING, { prewarm: "healthy" });
  await reach("prewarmed");
  await reach("suspended");
  machines.destroy("shop", record.id);
  await reach("destroyed");
}

async function liveUntilDeath(
  mortality: Mortality,
  keepWarmS = 0,
): Promise<{ id?: string; nonce?: string; updated?: boolean }> {
  // Whenever usage looks at the clock, a second has passed: a lost or doubled interval cannot go unnoticed.
  let clock = Date.parse("2026-01-31T23:59:00Z");
  world = await newWorld({ now: () => (clock += 1000) });
  const seen: { id?: string; nonce?: string; updated?: boolean } = {};
  const platform = await startPlatform(world, { wrap: (deps) => mortality.wrap(deps), settings: { keepWarmS } });
  await untilDeath(mortality, life(platform, world.host, seen));
  return seen;
}

/** The steps of a whole life, with VMMs kept or not. */
async function rehearse(keepWarmS: number): Promise<{ name: string; step: number }[]> {
  const rehearsal = new Mortality();
  await liveUntilDeath(rehearsal, keepWarmS);
  await world?.dispose();
  return stepsOf(rehearsal);
}

const steps = await rehearse(0);
const warmSteps = await rehearse(KEEP_WARM_S);

test("the rehearsal covers the whole life", () => {
  expect(steps.length).toBeGreaterThan(50);
  expect(steps.map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      "drain.set",
      "drain.clear",
      "hypervisor.restore",
      "vmm.capture",
      "snapshots.publish",
      "files.remove",
    ]),
  );
});

const MOMENTS = ["before", "after"] as const;
type When = (typeof MOMENTS)[number];
/** Kept VMMs change what is found, not what is stored: the short run tries one side of each step with them. */
const WITH_KEPT = longOr(["before", "after"], ["before"]);

describe.each(MOMENTS)("killed %s", (when) => {
  // After one step is mostly before the next.
  test.each(steps)("step $step, $name, no VMM kept", { ...(when === "after" && { tags: "again" }) }, ({ step }) =>
    dieAndLiveOn({ step, when, keepWarmS: 0 }),
  );
  test.each(WITH_KEPT.includes(when) ? warmSteps : [])("step $step, $name, VMMs kept", { tags: "again" }, ({ step }) =>
    dieAndLiveOn({ step, when, keepWarmS: KEEP_WARM_S }),
  );
});

test.each([
  ["resume", "suspended"],
  ["cold", "stopped"],
] as const)(
  "a %s start that the next platform brings to its end is told to the programs in the machine",
  async (kind, rest) => {
    const mortality = new Mortality();
    world = await newWorld();
    const first = await startPlatform(world, { wrap: (deps) => mortality.wrap(deps), settings: { keepWarmS: 0 } });
    first.apps.create("shop");
    const { id } = (await first.machines.create("shop", { name: "one", config: SMALL })).record;
    await first.machines.wait("shop", id, ["running"], TIMEOUT);
    first.machines[kind === "resume" ? "suspend" : "stop"]("shop", id);
    await first.machines.wait("shop", id, [rest], TIMEOUT);
    mortality.arm(kind === "resume" ? "vmm.run" : "vmm.openChannel", "after");
    first.machines.start("shop", id);
    await mortality.death.promise;
    const next = await startPlatform(world);
    try {
      await next.machines.wait("shop", id, ["running"], TIMEOUT);
      const told: string[] = [];
      next.guestApi.subscribe(id, (event) => told.push(event.kind));
      expect(told).toEqual([kind]);
    } finally {
      await next.close();
    }
  },
);

/** Kills the platform at this step of a life, and sees what the next one makes of it. */
async function dieAndLiveOn({ step, when, keepWarmS }: { step: number; when: When; keepWarmS: number }): Promise<void> {
  const seen = await liveUntilDeath(new Mortality(step, when), keepWarmS);
  if (world === undefined) throw new Error("no world");
  const { host, store } = world;
  const platform = await startPlatform(world, { settings: { keepWarmS } });
  const { machines } = platform;
  try {
    // A drain that was in progress continues. Once it is over, what it suspended starts again.
    platform.drain.end();
    await vi.waitFor(
      () => expect(store.machines.list().filter(({ drained }) => drained)).toEqual([]),
      TIMEOUT.timeoutMs,
    );
    for (const { id, name, state } of store.machines.list()) {
      const { state: state2 } = await machines.wait("shop", id, ["settled", "destroyed"], TIMEOUT);
      if (state2 === "destroyed") continue;
      expect(isResting(machines.get("shop", id).record.state), `${name} was ${state}`).toBe(true);
      const { record } = machines.get("shop", id);
      expect(record.state, record.stateReason ?? "").not.toBe("failed");
      // Usable: whatever state it rests in, it starts and answers.
      machines.start("shop", id);
      await machines.wait("shop", id, ["running"], TIMEOUT);
      const answer = host.guest(id)?.request();
      expect(answer).toBeDefined();
      // A snapshot from before they were set does not come back.
      for (const secret of platform.secrets.list("shop"))
        expect(host.guest(id)?.env).toHaveProperty(secret.name, "new");
      // Until something is requested that gives the memory up, it is never lost.
      if (seen.nonce !== undefined && seen.updated !== true) expect(answer?.nonce).toBe(seen.nonce);
      machines.suspend("shop", id);
      await machines.wait("shop", id, ["suspended"], TIMEOUT);
      expect(record.config.mounts?.map(({ volume }) => volume)).toEqual(
        store.volumes.list().map((volume) => volume.id),
      );
      machines.destroy("shop", id);
      await machines.wait("shop", id, ["destroyed"], TIMEOUT);
    }
    expectWhole(join(world.folder, "hibernaut.db"), store.usage.open());
    // What is left is the volume.
    expect(store.usage.open().filter(({ meter }) => meter !== "volume")).toEqual([]);
    expect(host.mostPerMachine).toBeLessThanOrEqual(1);
    expect(new Set(host.restored).size).toBe(host.restored.length);
    expect(host.processes.size).toBe(0);
  } finally {
    await platform.close();
  }
}
