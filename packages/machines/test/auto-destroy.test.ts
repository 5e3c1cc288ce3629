/** A machine with auto_destroy ends for good, although the platform is killed at any step of that, and its volume stays. */
import { afterEach, describe, expect, test } from "vitest";
import { newWorld, SMALL, startPlatform, type World } from "../../platform/test/helpers/fake-world.ts";
import { Mortality } from "../../platform/test/helpers/mortal.ts";
import { firstOfEach, stepsOf, untilDeath } from "./until-death.ts";

const TIMEOUT = { timeoutMs: 5000 };
const CONFIG = {
  ...SMALL,
  auto_destroy: true,
  restart: { policy: "no" as const },
  mounts: [{ volume: "data", path: "/data" }],
};

let world: World | undefined;
afterEach(async () => {
  await world?.dispose();
  world = undefined;
});

type End = "its app ends" | "a client stops it";

/** A machine that ran before this platform began, and ends on it. The platform dies as `mortality` says. */
async function endUntilDeath(end: End, mortality: Mortality): Promise<{ world: World; id: string }> {
  const made = await newWorld();
  world = made;
  const first = await startPlatform(made);
  first.apps.create("shop");
  const { id } = (await first.machines.create("shop", { name: "one", config: CONFIG })).record;
  await first.machines.wait("shop", id, ["running"], TIMEOUT);
  await first.close();
  await untilDeath(mortality, finish(made, { end, id, mortality }));
  return { world: made, id };
}

async function finish(where: World, { end, id, mortality }: { end: End; id: string; mortality: Mortality }) {
  const { machines } = await startPlatform(where, { wrap: (deps) => mortality.wrap(deps) });
  if (end === "its app ends") where.host.guest(id)?.exit(0);
  else machines.stop("shop", id);
  await machines.wait("shop", id, ["destroyed"], TIMEOUT);
}

async function rehearse(end: End): Promise<{ end: End; name: string; step: number }[]> {
  const rehearsal = new Mortality();
  await endUntilDeath(end, rehearsal);
  await world?.dispose();
  return stepsOf(rehearsal).map((step) => ({ end, ...step }));
}

const STEPS = [...(await rehearse("its app ends")), ...(await rehearse("a client stops it"))];

test("the rehearsals cover the end of the guest and of its files", () => {
  expect(STEPS.map(({ name }) => name)).toEqual(expect.arrayContaining(["store.update", "files.remove"]));
});

const ENDS = ["its app ends", "a client stops it"] as const;
const both = ENDS.map((end) => firstOfEach(STEPS.filter((one) => one.end === end)));
const first = both.flatMap((of) => of.first);
const others = both.flatMap((of) => of.others);

test.each(first)("killed before step $step, the first $name, when $end", (one) => dieAndEnd(one, "before"));

// kill.test.ts has every step of a life. After one step is mostly before the next.
describe("killed at every other step", { tags: "again" }, () => {
  test.each(others)("before step $step, $name, when $end", (one) => dieAndEnd(one, "before"));
  test.each(STEPS)("after step $step, $name, when $end", (one) => dieAndEnd(one, "after"));
});

/** Kills the platform at this step of the end of a machine, and sees whether the next one brings it to its end. */
async function dieAndEnd({ end, step }: { end: End; step: number }, when: "before" | "after"): Promise<void> {
  const { world: left, id } = await endUntilDeath(end, new Mortality(step, when));
  const platform = await startPlatform(left);
  const { machines } = platform;
  try {
    const { state } = await machines.wait("shop", id, ["settled", "destroyed"], TIMEOUT);
    const history = machines.events("shop", id, 100).map(({ type }) => type);
    // A client whose stop was not stored was told so.
    if (state === "running" && end === "a client stops it") return expect(history).not.toContain("stop");
    // Killed before it could look: the guest says what happened.
    if (state === "running") left.host.guest(id)?.exit(0);
    await machines.wait("shop", id, ["destroyed"], TIMEOUT);
    expect(left.store.volumes.list()).toMatchObject([{ name: "data" }]);
    expect(left.host.of(id)).toEqual([]);
  } finally {
    await platform.close();
  }
}

test("a drain, an idle stop and a lost guest leave it: it is to run again, or nobody knows how far it came", async () => {
  world = await newWorld();
  const { machines, apps, drain, close } = await startPlatform(world);
  try {
    apps.create("shop");
    const { id } = (await machines.create("shop", { config: CONFIG })).record;
    const reach = (state: "running" | "suspended" | "stopped" | "failed") =>
      machines.wait("shop", id, [state], TIMEOUT);
    await reach("running");
    drain.begin({ suspend: true });
    await reach("suspended");
    drain.end();
    await reach("running");
    machines.sleep("shop", id, { how: "stop", otherwise: "stop" }, { by: "proxy" });
    await reach("stopped");
    machines.start("shop", id);
    await reach("running");
    const [vmm] = world.host.of(id);
    if (vmm !== undefined) world.host.kill(vmm.ref);
    await reach("failed");
  } finally {
    await close();
  }
});
