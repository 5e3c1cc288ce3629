/** The platform is killed at every step of copying a running machine, and the machine never notices. */
import { afterEach, describe, expect, test } from "vitest";
import { newWorld, runningMachine, startPlatform, type World } from "../../platform/test/helpers/fake-world.ts";
import { Mortality } from "../../platform/test/helpers/mortal.ts";
import { Stage } from "../src/stage.ts";

const TIMEOUT = { timeoutMs: 5000 };
let world: World | undefined;

afterEach(async () => {
  await world?.dispose();
  world = undefined;
});

/** Starts a machine, and copies it until the platform dies. */
async function copyUntilDeath(doomed: Mortality): Promise<{ id: string; nonce: string; all: string[] }> {
  world = await newWorld();
  const { folder, host } = world;
  const healthy = await startPlatform(world);
  const id = await runningMachine(healthy);
  const nonce = host.guest(id)?.request()?.nonce ?? "";
  await healthy.close();
  const platform = await startPlatform(world, { wrap: (deps) => doomed.wrap(deps) });
  const stage = new Stage(folder);
  stage.clones = async () => true;
  const copying = platform.machineCopies.copy(id, stage, new AbortController().signal);
  await Promise.race([copying.catch(() => {}), doomed.death.promise]);
  return { id, nonce, all: doomed.steps };
}

const { all } = await copyUntilDeath(new Mortality());
await world?.dispose();
const begin = all.indexOf("vmm.pause");
const steps = all.map((name, step) => ({ name, step })).slice(begin);

test("the rehearsal covers the copy", () => {
  expect(steps.map(({ name }) => name)).toEqual([
    "vmm.pause",
    "snapshots.captureCopy",
    "vmm.capture",
    "vmm.run",
    "snapshots.describeCopy",
  ]);
});

describe.each(["before", "after"] as const)("killed %s", (when) => {
  test.each(steps)("step $step, $name", async ({ step }) => {
    const { id, nonce } = await copyUntilDeath(new Mortality(step, when));
    if (world === undefined) throw new Error("no world");
    const { host } = world;
    const platform = await startPlatform(world);
    const { machines } = platform;
    try {
      expect(machines.get("shop", id).record).toMatchObject({ state: "running", snapshot: null });
      expect(host.of(id)[0]?.running, "its guest runs on").toBe(true);
      expect(host.guest(id)?.request()?.nonce).toBe(nonce);
      machines.suspend("shop", id);
      await machines.wait("shop", id, ["suspended"], TIMEOUT);
      machines.start("shop", id);
      await machines.wait("shop", id, ["running"], TIMEOUT);
      expect(host.guest(id)?.request()?.nonce).toBe(nonce);
      expect(host.mostPerMachine).toBe(1);
      expect(new Set(host.restored).size).toBe(host.restored.length);
    } finally {
      await platform.close();
    }
  });
});
