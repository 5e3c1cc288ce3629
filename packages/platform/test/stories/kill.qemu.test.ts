/** `kill -9` of the platform with real guests. `machines/kill.test.ts` covers every step on the fake hypervisor. */
import { beforeAll, describe, expect, test } from "vitest";
import { longOr } from "../helpers/long.ts";
import { ask, askUntilAnswered } from "../helpers/qemu-world.ts";
import { Place } from "../helpers/served.ts";
import { slowed } from "../helpers/slow.ts";

const place = Place.forTests();
let id: string;
let address: string;
beforeAll(async () => {
  ({ machine_id: id, private_address: address } = await place.machine());
});

const killAndStartAgain = async () => {
  await place.served.kill();
  await place.served.start();
  await place.reach(id, "settled");
};

describe("the platform is killed while a machine is", () => {
  test("running: the guest never notices, and is the platform's again", async () => {
    const before = await askUntilAnswered(address);
    const [process] = await place.processes();
    await place.served.kill();
    const meanwhile = await ask(address);
    expect(meanwhile).toMatchObject({ nonce: before.nonce, count: before.count + 1 });
    await place.served.start();
    expect((await place.get(id)).state).toBe("running");
    expect(await place.processes()).toEqual([process]);
    expect(await ask(address)).toMatchObject({ nonce: before.nonce, count: before.count + 2 });
    await place.suspend(id);
    await place.start(id);
    expect(await askUntilAnswered(address)).toMatchObject({ nonce: before.nonce, count: before.count + 3 });
  });

  test("suspended: it resumes where it stopped", { tags: "again" }, async () => {
    const before = await ask(address);
    await place.suspend(id);
    await killAndStartAgain();
    expect((await place.get(id)).state).toBe("suspended");
    await place.start(id);
    expect(await askUntilAnswered(address)).toMatchObject({ nonce: before.nonce, count: before.count + 1 });
  });

  // From the request to the durable snapshot it takes about 100 ms: these moments fall into all of it.
  test.each(longOr([0, 5, 15, 30, 50, 80, 120], [30]))(
    "suspending, after %i ms: it sleeps or runs, and has lost nothing",
    async (moment) => {
      const before = await ask(address);
      await place.client.suspendMachine(place.app, id);
      await new Promise((resolve) => setTimeout(resolve, slowed(moment)));
      await killAndStartAgain();
      const { state } = await place.get(id);
      expect(["running", "suspended"]).toContain(state);
      expect(await place.processes()).toHaveLength(state === "running" ? 1 : 0);
      if (state === "suspended") await place.start(id);
      expect(await askUntilAnswered(address)).toMatchObject({ nonce: before.nonce, count: before.count + 1 });
    },
  );

  // A resume takes about 150 ms until the guest runs.
  test.each(longOr([0, 20, 50, 80, 110, 150], [50]))(
    "resuming, after %i ms: it comes up, and no snapshot has run twice",
    async (moment) => {
      const before = await ask(address);
      await place.suspend(id);
      await place.client.startMachine(place.app, id);
      await new Promise((resolve) => setTimeout(resolve, slowed(moment)));
      await killAndStartAgain();
      expect((await place.get(id)).state).toBe("running");
      expect(await place.processes()).toHaveLength(1);
      expect(await askUntilAnswered(address)).toMatchObject({ nonce: before.nonce, count: before.count + 1 });
    },
  );

  test("starting cold: the start is finished", { tags: "again" }, async () => {
    await place.client.stopMachine(place.app, id);
    await place.reach(id, "stopped");
    await place.client.startMachine(place.app, id);
    await expect.poll(() => place.processes(), { timeout: 30_000, interval: 10 }).toHaveLength(1);
    const [booting] = await place.processes();
    await killAndStartAgain();
    expect((await place.get(id)).state).toBe("running");
    expect(await place.processes(), "the boot in progress continued").toEqual([booting]);
    await askUntilAnswered(address);
  });

  test("running, and its guest dies meanwhile: it is started again, cold, with the reason", {
    tags: "again",
  }, async () => {
    await place.served.kill();
    const [vmm] = await place.processes();
    if (vmm === undefined) throw new Error("there is no guest to kill");
    process.kill(vmm.pid, "SIGKILL");
    await place.served.start();
    await place.reach(id, "running");
    expect((await place.get(id)).last_boot).toMatchObject({ kind: "cold", reason: "vmm_lost" });
  });
});
