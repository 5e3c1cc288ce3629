/** Backups at a target: what is there, what comes back from there, and what is said when it fails. */
import { existsSync } from "node:fs";
import { readdir, readFile, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { openStore } from "@hibernaut/store/open";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { runningMachine } from "../../../platform/test/helpers/fake-world.ts";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { Home, patient, restic, restore, run } from "./helpers.ts";

const TIMEOUT = { timeoutMs: 5000 };
const MOUNTS = { mounts: [{ volume: "data", path: "/data" }] };

let home: Home;

beforeEach(async () => {
  home = await Home.open();
});
afterEach(() => home.close());

async function sleepingMachine(): Promise<{ id: string; count: number }> {
  const { machines } = home.platform;
  const id = await runningMachine(home.platform, MOUNTS);
  const { count = 0 } = home.world.host.guest(id)?.request() ?? {};
  machines.suspend("shop", id);
  await machines.wait("shop", id, ["suspended"], TIMEOUT);
  return { id, count };
}

describe("a backup at a target", () => {
  test("gives the whole platform back to a bare host, from the target and the key alone", async () => {
    const { id, count } = await sleepingMachine();
    const target = await home.add();
    const last = await home.backUp();
    expect(last).toMatchObject({ state: "complete", error: null });
    const data = await restore(target);
    const copy = await Home.open({}, async (folder) => void (await run("cp", ["-a", `${data}/.`, folder])));
    onTestFinished(() => copy.close());
    const { machines } = copy.platform;
    expect(machines.get("shop", id).record.state).toBe("suspended");
    machines.start("shop", id);
    await machines.wait("shop", id, ["running"], TIMEOUT);
    expect(copy.world.host.guest(id)?.request()?.count).toBe(count + 1);
    expect(machines.get("shop", id).record.lastBoot).toMatchObject({ kind: "resume" });
  });

  test("is listed with what is in it, and told to those who follow the stream", async () => {
    const { id } = await sleepingMachine();
    await home.add();
    const { set } = await home.backUp();
    const [only, ...others] = await home.targets.sets("disk", patient());
    expect(others).toEqual([]);
    expect(only).toMatchObject({ set, state: "complete", own: true, apps: ["shop"], machines: 1, version: "0.1.0" });
    expect(only?.verified?.read).toBe("sample");
    expect(home.events()).toEqual(["backup.complete"]);
    expect(home.platform.machines.get("shop", id).record.state, "it sleeps on").toBe("suspended");
    expect(existsSync(join(home.world.folder, "tmp-backup")), "no debris").toBe(false);
  });

  test("adds little to the one before, and nothing of what never changes", { tags: "again" }, async () => {
    const { id } = await sleepingMachine();
    const volume = home.platform.volumes.list("shop").find(({ machineId }) => machineId === id)?.id ?? "";
    const disk = join(home.world.folder, "volumes", volume, "data.ext4");
    await run("dd", ["if=/dev/urandom", `of=${disk}`, "bs=1M", "count=40", "conv=notrunc", "status=none"]);
    await home.platform.volumes.snapshot("shop", volume);
    const target = await home.add();
    const first = await home.backUp();
    await run("dd", ["if=/dev/urandom", `of=${disk}`, "bs=64k", "count=1", "seek=100", "conv=notrunc", "status=none"]);
    const second = await home.backUp();
    expect(second.bytes).toBeGreaterThan(80 * 1024 ** 2);
    expect(first.added).toBeGreaterThan(40 * 1024 ** 2);
    expect(second.added).toBeLessThan(first.added / 5);
    const snapshots = JSON.parse(await restic(target.url, target.key, "snapshots", "--json")) as { paths: string[] }[];
    const kept = snapshots.filter(({ paths }) => paths[0]?.startsWith("/snapshot-"));
    expect(kept, "the volume's snapshot was sent once").toHaveLength(1);
    const restored = await readFile(join(await restore(target), "volumes", volume, "data.ext4"));
    expect(restored.equals(await readFile(disk)), "not a byte differs").toBe(true);
  });

  test("keeps files sparse", { tags: "again" }, async () => {
    const { id } = await sleepingMachine();
    const volume = home.platform.volumes.list("shop").find(({ machineId }) => machineId === id)?.id ?? "";
    await truncate(join(home.world.folder, "volumes", volume, "data.ext4"), 1024 ** 3);
    const target = await home.add();
    await home.backUp();
    const restored = await stat(join(await restore(target), "volumes", volume, "data.ext4"));
    expect(restored.size).toBe(1024 ** 3);
    expect(restored.blocks * 512).toBeLessThan(2 * 1024 ** 2);
  });

  test("is made to the state of a moment that someone names", { tags: "again" }, async () => {
    const target = await home.add();
    home.platform.apps.create("first");
    const early = await home.backUp();
    home.platform.apps.create("second");
    await home.backUp();
    const appsIn = (data: string) => {
      const store = openStore(join(data, "hibernaut.db"));
      try {
        return store.apps.list().map(({ name }) => name);
      } finally {
        store.close();
      }
    };
    expect(appsIn(await restore(target))).toEqual(["first", "second"]);
    expect(appsIn(await restore(target, { at: Date.parse(early.endedAt) }))).toEqual(["first"]);
    await expect(restore(target, { at: Date.parse("2020-01-01T00:00:00Z") })).rejects.toMatchObject({
      code: "not_found",
    });
  });

  test("can be read back in full before it counts", { tags: "again" }, async () => {
    await home.stop();
    await home.start({ verify: "pieces" });
    await sleepingMachine();
    await home.add();
    expect(await home.backUp()).toMatchObject({ state: "complete" });
    expect((await home.targets.sets("disk", patient()))[0]?.verified?.read).toBe("pieces");
  });
});

describe("secrets of a target", () => {
  test("are in no file and no answer, and the key is told once", async () => {
    const { key } = await home.add();
    expect(key).toMatch(/^[\w-]{43}$/);
    const file = await readFile(join(home.world.folder, "backup-targets.json"), "utf8");
    expect(file).not.toContain(key);
    expect(JSON.stringify(await home.targets.list())).not.toContain(key);
    expect((await stat(join(home.world.folder, "backup-targets.json"))).mode & 0o777).toBe(0o600);
    expect(JSON.stringify(home.world.logged)).not.toContain(key);
  });

  test("open a repository that exists, and nothing else does", async () => {
    const { url, key } = await home.add();
    await home.backUp();
    await home.targets.remove("disk");
    expect(await readdir(url), "what is there stays").toContain("config");
    const add = (more: object) => home.targets.add({ name: "again", url, ...more }, patient());
    await expect(add({})).rejects.toMatchObject({ code: "failed_precondition", details: { field: "key" } });
    await expect(add({ key: "not the key of it" })).rejects.toThrow(/this is not its key/);
    expect(await home.targets.list()).toEqual([]);
    expect((await add({ key })).key).toBe(null);
    expect(await home.targets.sets("again", patient())).toHaveLength(1);
  });
});

test("a target in the data directory, or around it, is refused", async () => {
  const { folder } = home.world;
  for (const url of [join(folder, "backups"), folder, join(folder, "..")])
    await expect(home.targets.add({ name: "disk", url }, patient())).rejects.toMatchObject({
      code: "invalid_argument",
    });
});

test("a directory on a disk that is not mounted is refused, and nothing is made in its place", async () => {
  const folder = await tempFolder("unmounted");
  await expect(home.add({ url: join(folder, "usb", "hibernaut") })).rejects.toThrow(/no directory .*usb\. .* mount it/);
  expect(await readdir(folder)).toEqual([]);
});

test("without restic, the error says how to get it", async () => {
  await home.stop();
  await home.start({ program: "/nowhere/restic" });
  await expect(home.add()).rejects.toThrow(/apt-get install restic/);
});

test("one backup is made at a time", async () => {
  await home.add();
  await home.targets.start("disk");
  await expect(home.targets.start("disk")).rejects.toMatchObject({ code: "failed_precondition" });
  expect(await home.targets.cancel("disk")).toBe(true);
  expect((await home.targets.get("disk")).last).toMatchObject({ state: "canceled" });
  expect(home.events()).toEqual(["backup.canceled"]);
});
