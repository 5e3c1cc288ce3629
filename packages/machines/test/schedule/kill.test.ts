/**
 * The platform is killed at every step of a scheduled start: the run is neither repeated nor lost.
 *
 * @module-tag again
 */
import { afterEach, expect, test } from "vitest";
import { newWorld, SMALL, startPlatform, type World } from "../../../platform/test/helpers/fake-world.ts";
import { Mortality } from "../../../platform/test/helpers/mortal.ts";
import { stepsOf, untilDeath } from "../until-death.ts";

const CREATED = new Date("2026-05-04T10:00:00Z");
const DUE = new Date("2026-05-04T10:30:00Z");
const TIMEOUT = { timeoutMs: 5000 };

let world: World | undefined;
afterEach(async () => {
  await world?.dispose();
  world = undefined;
});

/** A machine that sleeps when its run is due, on a platform that dies as `mortality` says. */
async function dueUntilDeath(mortality: Mortality): Promise<{ world: World; id: string }> {
  world = await newWorld();
  const first = await startPlatform(world, { wrap: (deps) => ({ ...deps, clock: () => CREATED }) });
  first.apps.create("shop");
  const { record } = await first.machines.create("shop", { config: { ...SMALL, schedule: "30 * * * *" } });
  const { id } = record;
  await first.machines.wait("shop", id, ["running"], TIMEOUT);
  first.machines.suspend("shop", id);
  await first.machines.wait("shop", id, ["suspended"], TIMEOUT);
  await first.close();
  let stop = () => {};
  await untilDeath(
    mortality,
    run(world, id, mortality, (end) => (stop = end)),
  );
  stop();
  return { world, id };
}

/** A platform that wakes the machine. `started` gets what ends its timer. */
async function run(where: World, id: string, mortality: Mortality, started: (stop: () => void) => void): Promise<void> {
  const platform = await startPlatform(where, { wrap: (deps) => mortality.wrap({ ...deps, clock: () => DUE }) });
  started(platform.startTimer());
  await platform.machines.wait("shop", id, ["running"], TIMEOUT);
}

const rehearsal = new Mortality();
await dueUntilDeath(rehearsal);
await world?.dispose();
const steps = stepsOf(rehearsal);

test("the rehearsal covers the start", () => {
  expect(steps.map(({ name }) => name)).toEqual(expect.arrayContaining(["store.update", "hypervisor.restore"]));
});

test.each((["before", "after"] as const).flatMap((when) => steps.map((step) => ({ ...step, when }))))(
  "killed $when step $step, $name",
  async ({ step, when }) => {
    const { world: left, id } = await dueUntilDeath(new Mortality(step, when));
    const platform = await startPlatform(left, { wrap: (deps) => ({ ...deps, clock: () => DUE }) });
    const stop = platform.startTimer();
    try {
      await platform.machines.wait("shop", id, ["running"], TIMEOUT);
      const starts = platform.machines.events("shop", id, 100).filter(({ details }) => details["by"] === "schedule");
      expect(starts.map(({ details }) => details["due"])).toEqual([DUE.toISOString()]);
      expect(left.host.of(id)).toHaveLength(1);
    } finally {
      stop();
      await platform.close();
    }
  },
);
