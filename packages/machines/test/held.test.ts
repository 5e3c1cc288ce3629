/** A VMM that was killed and does not end, because the kernel holds it, for instance in a write to a disk that is gone. */
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  type FakePlatform,
  newWorld,
  runningMachine,
  startPlatform,
  type World,
} from "../../platform/test/helpers/fake-world.ts";

const WAIT = { timeoutMs: 5000 };
/** A guest that does not power off is killed at once. */
const IMPATIENT = { settings: { slowFactor: 0.001 } };
const HELD = /was killed and has not ended: the kernel still holds its process/;

let world: World;
let platform: FakePlatform;

beforeEach(async () => {
  world = await newWorld();
  platform = await startPlatform(world, IMPATIENT);
});
afterEach(async () => {
  for (const { ref } of world.host.processes.values()) world.host.letGo(ref.machineId);
  await platform.close();
  await world.dispose();
});

const record = (id: string) => platform.machines.get("shop", id).record;
const reach = (id: string, ...states: ("running" | "failed" | "stopped" | "suspended")[]) =>
  platform.machines.wait("shop", id, states, WAIT);
/** Tries to start the machine, and waits until that has come to nothing. */
async function startInVain(id: string): Promise<void> {
  platform.machines.start("shop", id);
  await platform.machines.wait("shop", id, ["settled"], WAIT);
}

/** What was logged of restarts of the machine that wait for its VMM. */
const waits = (id: string) =>
  world.logged.filter(({ message, fields }) => message === "a restart waits for a VMM to end" && fields.machine === id);

async function stopInVain(): Promise<string> {
  const id = await runningMachine(platform, { stop_config: { timeout: 0 } });
  world.host.holding.add(id);
  platform.machines.stop("shop", id);
  await reach(id, "failed");
  return id;
}

test("a machine whose stop failed because its VMM does not end starts only after that has ended", async () => {
  const id = await stopInVain();
  expect(record(id).stateReason).toMatch(HELD);
  await startInVain(id);
  expect(record(id)).toMatchObject({ state: "failed", stateReason: expect.stringMatching(HELD) });
  expect(world.host.mostPerMachine).toBe(1);
  world.host.letGo(id);
  platform.machines.start("shop", id);
  await reach(id, "running");
  expect(world.host.mostPerMachine).toBe(1);
});

test("it is neither updated nor destroyed before its VMM has ended", async () => {
  const id = await stopInVain();
  platform.machines.destroy("shop", id);
  await reach(id, "failed");
  expect(record(id).stateReason).toMatch(HELD);
  world.host.letGo(id);
  platform.machines.destroy("shop", id);
  await platform.machines.wait("shop", id, ["destroyed"], WAIT);
});

test("a machine that was suspended keeps its memory when its VMM does not end, and wakes with it afterwards", async () => {
  const id = await runningMachine(platform);
  const nonce = world.host.guest(id)?.request()?.nonce;
  world.host.holding.add(id);
  platform.machines.suspend("shop", id);
  await reach(id, "suspended");
  await startInVain(id);
  expect(record(id)).toMatchObject({
    state: "failed",
    snapshot: expect.anything(),
    stateReason: expect.stringMatching(HELD),
  });
  expect(world.host.mostPerMachine).toBe(1);
  world.host.letGo(id);
  platform.machines.start("shop", id);
  await reach(id, "running");
  expect(world.host.guest(id)?.request()?.nonce).toBe(nonce);
  expect(world.host.mostPerMachine).toBe(1);
});

test("the restart policy starts no second VMM", async () => {
  const id = await runningMachine(platform, { restart: { policy: "always" }, stop_config: { timeout: 0 } });
  world.host.holding.add(id);
  world.host.guest(id)?.exit(1);
  await reach(id, "failed", "stopped");
  expect(record(id).stateReason).toMatch(HELD);
  expect(world.host.mostPerMachine).toBe(1);
});

test("the next platform starts although a VMM does not end, and starts no second one", async () => {
  const id = await stopInVain();
  const { record: other } = await platform.machines.create("shop", { config: record(id).config });
  await reach(other.id, "running");
  await platform.close();
  platform = await startPlatform(world, IMPATIENT);
  expect(record(other.id).state).toBe("running");
  await startInVain(id);
  expect(record(id).stateReason).toMatch(HELD);
  world.host.letGo(id);
  platform.machines.start("shop", id);
  await reach(id, "running");
  expect(world.host.mostPerMachine).toBe(1);
});

test("the next platform waits with the restart of a machine that was stored as running until its VMM has ended", async () => {
  const restart = { policy: "on-failure", max_retries: 1 } as const;
  const id = await runningMachine(platform, { restart });
  await platform.close();
  // It was killed while nobody looked, and answers nothing any more.
  world.host.holding.add(id);
  for (const { ref } of world.host.of(id)) expect(() => world.host.kill(ref)).toThrow(HELD);
  platform = await startPlatform(world, IMPATIENT);
  await expect.poll(() => waits(id), { timeout: WAIT.timeoutMs }).toHaveLength(1);
  expect(record(id).state).toBe("restarting");
  expect(world.host.mostPerMachine).toBe(1);
  world.host.letGo(id);
  await reach(id, "running");
  expect(world.host.mostPerMachine).toBe(1);
  expect(waits(id)).toHaveLength(1);
});
