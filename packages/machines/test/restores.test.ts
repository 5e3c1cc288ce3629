/** Restores on a fake host: a machine goes back to what a template has, and stays who it is. */
import { existsSync } from "node:fs";
import { truncate } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { SeedFiles } from "../src/births/seed-files.ts";
import { shopForEach } from "./shop.ts";

const shop = shopForEach({ settings: { keepWarmS: 60 } });
const never = new AbortController().signal;
const restore = (id: string, more: { skipLaunch?: boolean } = {}) =>
  shop.platform.restores.restore("shop", id, { template: "before", ...more }, never);
const cradle = (id: string) => existsSync(join(shop.world.folder, "templates", "births", id));

/** A machine that has answered once, with a template of that moment, and has answered twice more since. */
async function changed(): Promise<string> {
  const id = await shop.run();
  shop.host.guest(id)?.request();
  await shop.platform.templates.createOf("shop", { machine: id, name: "before" }, never);
  shop.host.guest(id)?.request();
  shop.host.guest(id)?.request();
  return id;
}

test("a machine that runs is back where the template stopped, with its id, name and address, as often as one likes", async () => {
  const id = await changed();
  const { name, address, version } = shop.record(id);
  for (const _ of ["once", "twice"]) {
    await restore(id);
    await shop.reach(id, "running");
    expect(shop.record(id)).toMatchObject({
      id,
      name,
      address,
      lastBoot: { kind: "resume" },
      origin: { kind: "template" },
    });
    expect(shop.record(id).version).not.toBe(version);
    expect(shop.host.guest(id)?.request()?.count).toBe(2);
    expect(cradle(id)).toBe(false);
  }
  expect(shop.events(id, "restored")).toHaveLength(2);
});

test("one that sleeps, also in memory, sleeps on with the other state, and one that is stopped gets a memory", async () => {
  const id = await changed();
  await shop.suspend(id);
  expect(shop.machines.get("shop", id).warmUntil).not.toBeNull();
  const { record, warmUntil } = await restore(id, { skipLaunch: true });
  expect(record.state).toBe("suspended");
  expect(warmUntil).toBeNull();
  await shop.start(id);
  expect(shop.host.guest(id)?.request()?.count).toBe(2);
  await shop.stop(id);
  await restore(id);
  await shop.reach(id, "running");
  expect(shop.host.guest(id)?.request()?.count).toBe(2);
});

test("a template that is deleted meanwhile is said to be gone, and the machine stays as it was", async () => {
  const id = await changed();
  const before = shop.record(id);
  const meanwhile = vi.spyOn(SeedFiles.prototype, "requireRoom").mockImplementationOnce(async () => {
    await shop.platform.templates.delete("shop", "before");
  });
  await expect(restore(id)).rejects.toMatchObject({ code: "not_found" });
  meanwhile.mockRestore();
  expect(shop.record(id)).toEqual(before);
});

test("another machine of the app can be restored from it, and becomes itself", async () => {
  await changed();
  const other = await shop.run({ env: { OLD: "yes" } });
  await restore(other);
  await shop.reach(other, "running");
  expect(shop.host.guest(other)?.state.hostname).toBe(other);
  expect(shop.host.guest(other)?.request()?.count).toBe(2);
  expect(shop.record(other).config.env?.["OLD"]).toBeUndefined();
});

test("a machine with a volume is refused, and so is one that is being restored, with everything as it was", async () => {
  const id = await changed();
  await shop.volumes.create("shop", { name: "data" });
  const rich = await shop.run({ mounts: [{ volume: "data", path: "/data" }] });
  await expect(restore(rich)).rejects.toThrow("has volumes");
  expect(shop.record(rich).state).toBe("running");
  const both = await Promise.allSettled([restore(id), restore(id)]);
  expect(both.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  await shop.reach(id, "running");
});

test("a template whose memory is damaged refuses it before the machine is stopped", async () => {
  const id = await changed();
  const { template } = shop.platform.templates.get("shop", "before");
  const generation = join("snapshots", template.machine.snapshot?.generation ?? "");
  await truncate(join(shop.world.folder, "templates", template.id, generation, "memory"), 100);
  await expect(restore(id)).rejects.toThrow("snapshot_corrupt");
  expect(shop.record(id).state).toBe("running");
  expect(shop.host.guest(id)?.request()?.count).toBe(4);
  expect(cradle(id)).toBe(false);
});

test("a disk that fails once the record says so costs nothing: the next start puts the files in their place", async () => {
  const id = await changed();
  const { replace } = SeedFiles.prototype;
  const failing = vi.spyOn(SeedFiles.prototype, "replace").mockImplementationOnce(async () => {
    throw Object.assign(new Error("EIO: i/o error"), { code: "EIO" });
  });
  await expect(restore(id)).rejects.toThrow("EIO");
  failing.mockImplementation(replace);
  expect(shop.record(id).state).toBe("suspended");
  // Until then, nobody takes the files that are there for those of the machine.
  await shop.platform.scrubber.look(never);
  expect(shop.record(id).snapshot).not.toBeNull();
  await expect(restore(id)).rejects.toThrow("Start it first");
  const again = { machine: id, name: "again" };
  await expect(shop.platform.templates.createOf("shop", again, never)).rejects.toThrow("Start it");
  await shop.start(id);
  expect(shop.record(id).lastBoot?.kind).toBe("resume");
  expect(shop.host.guest(id)?.request()?.count).toBe(2);
  expect(cradle(id)).toBe(false);
  failing.mockRestore();
});

test("a machine that crashes all the time is to be stopped first, before anything is copied", async () => {
  const id = await changed();
  shop.host.crashing.add(id);
  shop.host.guest(id)?.exit(1);
  await shop.reach(id, "restarting");
  await expect(restore(id)).rejects.toThrow(/Stop it first: `hibernaut machine stop/);
});

test("open requests end first, and new ones wait", async () => {
  const steps: string[] = [];
  const hold = () => {
    steps.push("held");
    return () => void steps.push("released");
  };
  await shop.restart({
    wrap: (deps) => ({
      ...deps,
      holdBack: hold,
      finishRequests: async (id) => void steps.push(`${shop.record(id).state}, finishing`),
    }),
  });
  const id = await changed();
  steps.length = 0;
  await restore(id);
  expect(steps).toEqual(["held", "running, finishing", "released"]);
});

test("a template with other secrets than the app has now is refused, before anything is lost", async () => {
  const id = await changed();
  shop.platform.secrets.set("shop", { KEY: "new" });
  await expect(restore(id)).rejects.toThrow(/secrets have changed.*new template/);
  expect(shop.host.guest(id)?.request()?.count).toBe(4);
});
