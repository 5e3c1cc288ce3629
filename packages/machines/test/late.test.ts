/** A platform that was halted for longer than its lease: another host may run the machine by then. */
import { HibernautError } from "@hibernaut/domain/errors";
import { afterEach, expect, test } from "vitest";
import {
  type FakePlatform,
  newWorld,
  runningMachine,
  startPlatform,
  type World,
} from "../../platform/test/helpers/fake-world.ts";
import type { Ownership } from "../src/ownership.ts";

const WAIT = { timeoutMs: 5000 };
let world: World;
let platform: FakePlatform;
afterEach(async () => {
  await platform.close();
  await world.dispose();
});

/** The host's lease ends as soon as the guest of a start runs, as if the platform had been halted right before. */
async function withLease(keepWarmS: number): Promise<{ id: string; end(): void }> {
  world = await newWorld();
  let armed = false;
  const refused = () => new HibernautError("unavailable", "The lease of this host has ended.");
  const late = (id: string) => (armed && world.host.of(id).some(({ running }) => running) ? refused() : undefined);
  const ownership = {
    addresses: () => [],
    claim: async (record) => record,
    release() {},
    publish() {},
    readdress: async (record) => record.address,
    refusal: () => undefined,
    verify: async (id) => late(id),
    settle: async (records) => records.map((record) => ({ kind: "own", record })),
  } satisfies Ownership;
  platform = await startPlatform(world, { settings: { keepWarmS }, wrap: (deps) => ({ ...deps, ownership }) });
  return { id: await runningMachine(platform), end: () => (armed = true) };
}

test.each([
  ["resumed", 0],
  ["kept warm", 300],
])("a machine that was %s too late is ended at once", async (_, keepWarmS) => {
  const { id, end } = await withLease(keepWarmS);
  platform.machines.suspend("shop", id);
  await platform.machines.wait("shop", id, ["suspended"], WAIT);
  expect(world.host.of(id).length).toBe(keepWarmS > 0 ? 1 : 0);
  end();
  platform.machines.start("shop", id);
  await platform.machines.wait("shop", id, ["stopped"], WAIT);
  expect(world.host.of(id)).toEqual([]);
  expect(world.host.restored, "it ran, and was ended").toHaveLength(1);
  expect(platform.machines.get("shop", id).record.stateReason).toMatch("The lease of this host has ended.");
});
