/** Machines that are born from a template with volumes: they have its disk, and start without its memory. */
import { readFile, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { shopForEach } from "../shop.ts";

const shop = shopForEach();
const never = new AbortController().signal;
const layerOf = (id: string) => `${shop.world.folder}/machines/${id}/layer.ext4`;

/** A template named `ready`, with something on its disk, and a volume. */
async function prepared(warmPool = 0): Promise<{ machine: string; volume: string }> {
  const machine = await shop.run();
  await writeFile(layerOf(machine), "what was installed");
  await shop.platform.templates.createOf("shop", { machine, name: "ready", warmPool }, never);
  const { id: volume } = await shop.volumes.create("shop", { name: "data" });
  return { machine, volume };
}

const bear = (volume: string, more = {}) =>
  shop.platform.templates.bear("shop", "ready", { mounts: [{ volume, path: "/data" }], ...more }, never);

test("it starts from scratch with the disk of its template and its volume, and sleeps and wakes with both", async () => {
  const { volume } = await prepared(1);
  const { record } = await bear(volume);
  await shop.reach(record.id, "running");
  expect(shop.record(record.id)).toMatchObject({
    ...{ lastBoot: { kind: "cold", reason: "volumes_mounted" }, origin: { kind: "template" } },
    config: { mounts: [{ volume, name: "data", path: "/data" }] },
  });
  expect(await readFile(layerOf(record.id), "utf8")).toBe("what was installed");
  expect(shop.host.guest(record.id)?.volumes).toEqual([`${volume} /data`]);
  expect(shop.volumes.get("shop", volume).machineId).toBe(record.id);
  await shop.suspend(record.id);
  await shop.start(record.id);
  expect(shop.record(record.id).lastBoot).toMatchObject({ kind: "resume" });
});

test("of two that want a volume one gets it, nothing is left of the other, and the volume is free once that is gone", async () => {
  const { volume } = await prepared();
  const before = shop.machines.list("shop").length;
  const settled = await Promise.allSettled([bear(volume), bear(volume)]);
  expect(settled.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  expect(settled.find(({ status }) => status === "rejected")).toMatchObject({
    reason: { code: "failed_precondition" },
  });
  expect(shop.machines.list("shop")).toHaveLength(before + 1);
  const id = shop.volumes.get("shop", volume).machineId ?? "";
  await shop.reach(id, "running");
  shop.machines.destroy("shop", id, { force: true });
  await shop.reach(id, "destroyed");
  const { record } = await bear(volume);
  await shop.reach(record.id, "running");
});

test("a place where no volume can be is refused before anything is copied, and one that is not started waits", async () => {
  const { volume } = await prepared();
  const mounts = [{ volume, path: "/proc/x" }];
  await expect(shop.platform.templates.bear("shop", "ready", { mounts }, never)).rejects.toMatchObject({
    code: "invalid_argument",
  });
  expect(shop.volumes.get("shop", volume).machineId).toBeNull();
  const { record } = await bear(volume, { skipLaunch: true });
  expect(record.state).toBe("created");
  await shop.restart();
  await shop.start(record.id);
  expect(await readFile(layerOf(record.id), "utf8")).toBe("what was installed");
});
