/** A machine that version 0.1 put to sleep, on real QEMU and with its memory, under the present version. */
import { expect, test } from "vitest";
import { FirstRelease } from "../helpers/first-release.ts";
import { askUntilAnswered, BUNDLE, dataFolder } from "../helpers/qemu-world.ts";
import { NOTHING_LEFT, Place } from "../helpers/served.ts";
import { packSmallApp, SMALL_APP } from "../helpers/small-app/image.ts";

const LIMIT_MS = 600_000;
const ENVIRONMENT = {
  HIBERNAUT_NETWORK: "user",
  HIBERNAUT_ACCELERATOR: "tcg",
  HIBERNAUT_API_LISTEN: "127.0.0.1:0",
  HIBERNAUT_PROXY_LISTEN: "127.0.0.1:0",
  HIBERNAUT_LAYER_SIZE_MB: "256",
  HIBERNAUT_LOG_LEVEL: "silent",
};

test("it resumes, is suspended by the present version, and moves to new hardware when it starts cold", {
  timeout: LIMIT_MS,
}, async () => {
  const release = await FirstRelease.open();
  try {
    await packSmallApp();
    const bundle = await release.bundle();
    const folder = await dataFolder();
    const first = await release.serve(folder.path, { ...ENVIRONMENT, HIBERNAUT_GUEST_BUNDLE: bundle });
    const { client } = first;
    await client.createApp("old");
    await client.setSecrets("old", { TOKEN: "hunter2" });
    const config = { image: SMALL_APP, services: [{ internal_port: 8080 }] };
    const { id } = await client.createMachine("old", { config });
    await client.waitForMachine("old", id, { timeout: 120 });
    const { private_address: address } = await client.getMachine("old", id);
    const before = await askUntilAnswered(address);
    await client.suspendMachine("old", id);
    await client.waitForMachine("old", id, { state: ["suspended"], timeout: 60 });
    await first.stop();

    const place = await Place.open({ ...ENVIRONMENT, HIBERNAUT_GUEST_BUNDLE: BUNDLE }, folder);
    try {
      const wake = async () => {
        await place.client.startMachine("old", id);
        await place.client.waitForMachine("old", id, { timeout: 120 });
        return { answer: await askUntilAnswered(address), machine: await place.client.getMachine("old", id) };
      };
      const suspend = async () => {
        await place.client.suspendMachine("old", id);
        await place.client.waitForMachine("old", id, { state: ["suspended"], timeout: 60 });
      };
      for (const more of [1, 2]) {
        const { answer, machine } = await wake();
        expect(answer).toMatchObject({ nonce: before.nonce, count: before.count + more });
        expect(machine).toMatchObject({ last_boot: { kind: "resume" }, suspend: { eligible: true } });
        // The guest is of version 0.1: another platform adopts it and must know what it runs on.
        await place.served.stop();
        await place.served.start();
        await suspend();
      }
      await place.client.updateMachine("old", id);
      await place.client.stopMachine("old", id);
      await place.client.waitForMachine("old", id, { state: ["stopped"], timeout: 60 });
      const cold = await wake();
      expect(cold.answer.nonce).not.toBe(before.nonce);
      expect(cold.machine.guest_bundle).toMatchObject({ current: true, update_pending: false });
      await suspend();
      expect((await wake()).answer.nonce).toBe(cold.answer.nonce);
      await place.client.destroyApp("old", { force: true });
    } finally {
      expect(await place.close()).toEqual(NOTHING_LEFT);
    }
  } finally {
    await release.dispose();
  }
});
