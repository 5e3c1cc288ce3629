/** A VMM that was killed and does not end, because the kernel holds it, for instance in a write to a disk that is gone. */
import { afterEach, expect, test } from "vitest";
import { shopForEach } from "./shop.ts";

const HELD = /was killed and has not ended: the kernel still holds its process/;

/** A guest that does not power off is killed at once. */
const shop = shopForEach({ settings: { slowFactor: 0.001 } });
afterEach(() => {
  for (const { ref } of shop.host.processes.values()) shop.host.letGo(ref.machineId);
});

/** Tries to start the machine, and waits until that has come to nothing. */
async function startInVain(id: string): Promise<void> {
  shop.machines.start("shop", id);
  await shop.reach(id, "settled");
}

/** What was logged of restarts of the machine that wait for its VMM. */
const waits = (id: string) =>
  shop.world.logged.filter(
    ({ message, fields }) => message === "a restart waits for a VMM to end" && fields.machine === id,
  );

async function stopInVain(): Promise<string> {
  const id = await shop.run({ stop_config: { timeout: 0 } });
  shop.host.holding.add(id);
  shop.machines.stop("shop", id);
  await shop.reach(id, "failed");
  return id;
}

test("a machine whose stop failed because its VMM does not end starts only after that has ended", async () => {
  const id = await stopInVain();
  expect(shop.record(id).stateReason).toMatch(HELD);
  await startInVain(id);
  expect(shop.record(id)).toMatchObject({ state: "failed", stateReason: expect.stringMatching(HELD) });
  shop.host.letGo(id);
  await shop.start(id);
});

test("it is neither updated nor destroyed before its VMM has ended", async () => {
  const id = await stopInVain();
  shop.machines.destroy("shop", id);
  await shop.reach(id, "failed");
  expect(shop.record(id).stateReason).toMatch(HELD);
  shop.host.letGo(id);
  shop.machines.destroy("shop", id);
  await shop.reach(id, "destroyed");
});

test("a machine that was suspended keeps its memory when its VMM does not end, and wakes with it afterwards", async () => {
  const id = await shop.run();
  const nonce = shop.request(id)?.nonce;
  shop.host.holding.add(id);
  await shop.suspend(id);
  await startInVain(id);
  expect(shop.record(id)).toMatchObject({
    state: "failed",
    snapshot: expect.anything(),
    stateReason: expect.stringMatching(HELD),
  });
  shop.host.letGo(id);
  await shop.start(id);
  expect(shop.request(id)?.nonce).toBe(nonce);
});

test("the restart policy starts no second VMM", async () => {
  const id = await shop.run({ restart: { policy: "always" }, stop_config: { timeout: 0 } });
  shop.host.holding.add(id);
  shop.host.guest(id)?.exit(1);
  await shop.reach(id, "failed", "stopped");
  expect(shop.record(id).stateReason).toMatch(HELD);
});

test("the next platform starts although a VMM does not end, and starts no second one", async () => {
  const id = await stopInVain();
  const other = await shop.run();
  await shop.restart();
  expect(shop.record(other).state).toBe("running");
  await startInVain(id);
  expect(shop.record(id).stateReason).toMatch(HELD);
  shop.host.letGo(id);
  await shop.start(id);
});

test("the next platform waits with the restart of a machine that was stored as running until its VMM has ended", async () => {
  const restart = { policy: "on-failure", max_retries: 1 } as const;
  const id = await shop.run({ restart });
  await shop.platform.close();
  // It was killed while nobody looked, and answers nothing any more.
  shop.host.holding.add(id);
  for (const { ref } of shop.host.of(id)) expect(() => shop.host.kill(ref)).toThrow(HELD);
  await shop.open();
  await expect.poll(() => waits(id), { timeout: 5000 }).toHaveLength(1);
  expect(shop.record(id).state).toBe("restarting");
  shop.host.letGo(id);
  await shop.reach(id, "running");
  expect(waits(id)).toHaveLength(1);
});
