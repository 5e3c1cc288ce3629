/** Random lives of families: forks, templates, births, pools and restores at any moment, among all else that happens to machines. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { newWorld } from "../../platform/test/helpers/fake-world.ts";
import { longOr } from "../../platform/test/helpers/long.ts";
import { Family } from "./family.ts";
import { expectNoLeftovers } from "./leftovers.ts";

const LIVES = longOr(200, 12);
/** This many at a time: they mostly wait for copies. */
const AT_ONCE = 4;
/** What can happen, by weight. */
const WEIGHTS = {
  ...{ fork: 6, fork_asleep: 3, keep: 4, bear: 5, forget: 2, give_up: 1, pool: 2, restore: 3 },
  ...{ request: 6, suspend: 5, start: 5, stop: 1, lose: 1, destroy: 1, kill: 1 },
} as const;
type RandomEvent = keyof typeof WEIGHTS;

const anyEvent = fc.oneof(
  ...Object.entries(WEIGHTS).map(([name, weight]) => ({ weight, arbitrary: fc.constant(name as RandomEvent) })),
);
const anyStep = fc.record({
  event: anyEvent,
  /** Which machine or template, of those that there are. */
  who: fc.nat(),
  count: fc.integer({ min: 1, max: 3 }),
  /** Two may want the same one. */
  named: fc.constantFrom({}, {}, { name: "ada" }, { name: "bob" }),
  /** Turns of the event loop before the next step, which then comes in the middle of something; or until all rest. */
  pause: fc.constantFrom(0, 1, 5, 20, "at rest" as const, "at rest" as const),
});
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never;

async function act(family: Family, world: Awaited<ReturnType<typeof newWorld>>, step: Step): Promise<void> {
  const { event, who, count, named } = step;
  const [id, template] = [family.machine(who), family.template(who)];
  const { machines } = family.platform;
  switch (event) {
    case "fork":
    case "fork_asleep":
      return family.fork(id, { count, ...named, skipLaunch: event === "fork_asleep" });
    case "keep":
      return family.keep(id, named);
    case "bear":
      return family.bear(template, named);
    case "forget":
      return family.forget(template);
    case "pool":
      return family.pool(template, count - 1);
    case "restore":
      return family.restore(id, template, count === 1);
    case "give_up":
      return family.giveUp();
    case "kill":
      // A platform that ends gracefully; `forks-kill.test.ts` does the other kind.
      await family.close();
      return family.open();
    case "request":
      return family.try(() => world.host.guest(id)?.request());
    case "lose":
      return family.try(() => world.host.of(id).map(({ ref }) => world.host.end(ref)));
    case "destroy":
      return family.try(() => machines.destroy("shop", id, { force: true }));
    default:
      return family.try(() => machines[event]("shop", id));
  }
}

async function live(steps: Step[]): Promise<void> {
  const world = await newWorld();
  const family = new Family(world);
  try {
    await family.open();
    for (const each of steps) {
      await act(family, world, each);
      if (each.pause === "at rest") await family.rest();
      else for (let turn = 0; turn < each.pause; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    }
    await family.rest();
    expectNoLeftovers(world);
    await family.wakeAll();
    expect(world.host.mostPerMachine).toBeLessThanOrEqual(1);
    expect(new Set(world.host.restored).size).toBe(world.host.restored.length);
  } finally {
    await family.close();
    await world.dispose();
  }
}

test(`in ${LIVES} random lives, who is born remembers what its parent did, and is itself`, {
  timeout: 280_000,
}, async () => {
  const lives = fc.asyncProperty(fc.array(anyStep, { minLength: 4, maxLength: 16, size: "max" }), live);
  const share = () => fc.assert(lives, { numRuns: LIVES / AT_ONCE });
  await Promise.all(Array.from({ length: AT_ONCE }, share));
});
