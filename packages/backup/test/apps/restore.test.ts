/** A single app out of a backup: next to the one that runs, in its place, or after it was destroyed. */
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openStore } from "@hibernaut/store/open";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { noteUnfinished, readUnfinished } from "../../src/apps/unfinished.ts";
import { Home, restic } from "../targets/helpers.ts";
import { PATIENCE_MS, Shop } from "./helpers.ts";

const PATIENT = { timeout: PATIENCE_MS };

let home: Home;
let shop: Shop;

beforeEach(async () => {
  home = await Home.open();
  shop = new Shop(home);
});
afterEach(() => home.close());

describe("a copy next to the app", () => {
  test("has its memory, its volumes and its secrets, and the app is as it was", PATIENT, async () => {
    const { platform } = shop;
    platform.apps.create("other");
    const { id, volume, count } = await shop.backUp({ schedule: "daily" });
    platform.secrets.set("other", { KEY: "of another app" });
    const last = await shop.restore({ app: "shop", as: "shop-old" });
    expect(last).toMatchObject({ app: "shop", as: "shop-old", error: null, replaced: [] });
    const [copy, ...more] = last.machines;
    expect(more).toEqual([]);
    expect(copy).toMatchObject({ from: id, withoutMemory: null });
    expect(await shop.wake("shop-old", copy?.id)).toMatchObject({ boot: { kind: "resume" }, count: count + 1 });
    const { record } = platform.machines.get("shop-old", copy?.id ?? "");
    expect(record.origin).toEqual({ kind: "backup", machine: id });
    expect(record.config.schedule, "its jobs are done by the app itself").toBeUndefined();
    expect(record.cordoned).not.toBe(true);
    expect(last.volumes).toHaveLength(1);
    expect(last.volumes).not.toContain(volume);
    expect(await shop.contentOf(last.volumes[0])).toBe("before");
    expect(await shop.contentOf(volume)).toBe("after");
    expect(platform.machines.get("shop", id).record.state).toBe("suspended");
    expect(home.events()).toEqual(["backup.complete", "backup.restored"]);
    expect(await readdir(home.world.folder)).not.toContain("tmp-restore");
  });

  test("takes no name that is taken, and leaves nothing when it cannot be whole", {
    tags: "again",
    ...PATIENT,
  }, async () => {
    const { platform } = shop;
    platform.apps.create("other");
    await shop.backUp();
    const { appRestores } = platform;
    await expect(appRestores.restore("disk", { app: "shop" })).rejects.toMatchObject({ code: "already_exists" });
    const taken = appRestores.restore("disk", { app: "shop", as: "other" });
    await expect(taken).rejects.toMatchObject({ code: "already_exists" });
    const named = appRestores.restore("disk", { app: "shop", as: "No Name" });
    await expect(named).rejects.toMatchObject({ code: "invalid_argument" });
    expect(await shop.restore({ app: "nothing", as: "copy" })).toMatchObject({ error: { code: "not_found" } });
    // The volume comes first, and then there is no place for a machine.
    platform.drain.begin({});
    const last = await shop.restore({ app: "shop", as: "copy" });
    expect(last.error?.code).toBe("draining");
    expect(platform.apps.has("copy")).toBe(false);
    expect(platform.apps.has("other")).toBe(true);
    expect(home.world.store.volumes.list()).toHaveLength(1);
    expect(home.events().slice(-1)).toEqual(["backup.restore_failed"]);
  });
});

test("in the place of the app, restored machines get the requests, and the former ones keep what they have", {
  tags: "again",
}, async () => {
  const { platform } = shop;
  const { id, volume, count } = await shop.backUp();
  await shop.wake("shop", id);
  const last = await shop.restore({ app: "shop", inPlace: true });
  expect(last).toMatchObject({ error: null, replaced: [id] });
  const back = last.machines[0]?.id ?? "";
  await platform.machines.wait("shop", id, ["suspended"], { timeoutMs: 5000 });
  expect(platform.machines.get("shop", id).record).toMatchObject({ cordoned: true, state: "suspended" });
  expect(platform.machines.get("shop", back).record.cordoned).not.toBe(true);
  expect(await shop.wake("shop", back)).toMatchObject({ boot: { kind: "resume" }, count: count + 1 });
  expect(await shop.contentOf(volume)).toBe("after");
  expect(await shop.contentOf(last.volumes[0])).toBe("before");
  expect(await shop.wake("shop", id), "nothing of it is lost").toMatchObject({ count: count + 2 });
});

test("an app that was destroyed comes back under its name; memory with other secrets in it does not", {
  tags: "again",
}, async () => {
  const { platform } = shop;
  await shop.backUp();
  platform.secrets.set("shop", { KEY: "new" });
  const cold = await shop.restore({ app: "shop", inPlace: true });
  expect(cold.machines[0]?.withoutMemory).toMatch(/secrets have changed/);
  expect(await shop.wake("shop", cold.machines[0]?.id)).toMatchObject({ boot: { kind: "cold" } });
  expect(await shop.contentOf(cold.volumes[0])).toBe("before");
  await platform.apps.delete("shop", { force: true });
  const last = await shop.restore({ app: "shop" });
  expect(last).toMatchObject({ error: null, machines: [{ withoutMemory: null }] });
  expect(platform.secrets.list("shop"), "it had none then").toEqual([]);
});

test("a newer backup that cannot be read is not passed over without a word", {
  tags: "again",
  ...PATIENT,
}, async () => {
  await shop.backUp();
  const { url, key } = shop.target;
  const { set: good } = (await home.targets.get("disk")).lastSuccess ?? {};
  const { set: bad } = await home.backUp();
  const found = JSON.parse(await restic(url, key, "snapshots", "--json", "--tag", `set=${bad}`)) as {
    id: string;
    paths: string[];
  }[];
  const lost = found.find(({ paths }) => paths[0]?.startsWith("/machine-"))?.id ?? "";
  await restic(url, key, "forget", lost);
  const last = await shop.restore({ app: "shop", as: "copy" });
  expect(last.error?.message).toContain(`The newest set, ${bad}, cannot be read; the one before is ${good}.`);
  expect(await shop.restore({ app: "shop", as: "copy", set: good })).toMatchObject({ error: null, set: good });
});

test("what a platform that was killed left is removed, and nobody else's of that name", {
  tags: "again",
  ...PATIENT,
}, async () => {
  const { platform } = shop;
  const { folder } = home.world;
  const { id, volume } = await shop.backUp();
  const { createdAt } = platform.apps.create("copy");
  await noteUnfinished(folder, { app: "copy", createdAt });
  platform.apps.create("other");
  await noteUnfinished(folder, { app: "other", createdAt: "2026-01-01T00:00:00.000Z" });
  // Killed in place, after the first volume and machine were made.
  const since = new Date().toISOString();
  const restored = await platform.volumes.adopt(
    "shop",
    { id: "vol_0123456789abcdef", name: "data", sizeGb: 1, snapshotRetention: 5 },
    await aDisk(),
  );
  await noteUnfinished(folder, {
    ...{ app: "shop", createdAt: platform.apps.get("shop").createdAt },
    parts: { since, volumes: [restored.id, "vol_ffffffffffffffff"] },
  });
  await mkdir(join(folder, "tmp-restore"));
  await writeFile(join(folder, "tmp-restore", "piece"), "");
  await platform.appRestores.recover();
  expect(platform.apps.list().map(({ name }) => name)).toEqual(["other", "shop"]);
  expect(platform.volumes.list("shop").map((one) => one.id)).toEqual([volume]);
  expect(platform.machines.get("shop", id).record.state).toBe("suspended");
  expect(await readdir(folder)).not.toContain("tmp-restore");
  expect(await readUnfinished(folder)).toEqual([]);
});

async function aDisk(): Promise<string> {
  const file = join(home.world.folder, "disk");
  await writeFile(file, "");
  return file;
}

test("in place, a second time: only what had requests then gets them", { tags: "again", ...PATIENT }, async () => {
  const { id } = await shop.backUp();
  expect(await shop.restore({ app: "shop", inPlace: true })).toMatchObject({ error: null });
  await home.backUp();
  const last = await shop.restore({ app: "shop", inPlace: true });
  expect(last.machines).toMatchObject([{ from: id, cordoned: true }, { cordoned: false }]);
  const open = shop.platform.machines.list("shop").filter(({ record }) => record.cordoned !== true);
  expect(open.map(({ record }) => record.id)).toEqual([last.machines[1]?.id]);
});

test("files that a machine keeps outside of volumes come back with it", { tags: "again", ...PATIENT }, async () => {
  const { platform } = shop;
  const { id } = await shop.backUp({ keep_layer: true });
  await shop.wake("shop", id);
  platform.machines.stop("shop", id);
  await platform.machines.wait("shop", id, ["stopped"], { timeoutMs: 5000 });
  await writeFile(join(home.world.folder, "machines", id, "layer.ext4"), "kept");
  await home.backUp();
  const last = await shop.restore({ app: "shop", as: "copy" });
  const back = last.machines[0]?.id ?? "";
  expect(platform.machines.get("copy", back).record).toMatchObject({ resetLayer: false, origin: { kind: "backup" } });
  expect(await readFile(join(home.world.folder, "machines", back, "layer.ext4"), "utf8")).toBe("kept");
});

test("sandboxes and their volumes stay in the backup, and the rest of the app comes back", {
  tags: "again",
  ...PATIENT,
}, async () => {
  const { platform } = shop;
  await shop.backUp();
  const sandbox = await platform.machines.create("shop", {
    config: { image: "app:1", guest: { memory_mb: 128 }, mounts: [{ volume: "session", path: "/data" }] },
    skipLaunch: true,
  });
  const times = { started_at: "2026-01-01T00:00:00Z", ends_at: "2099-01-01T00:00:00Z", timeout_s: 300 };
  const session = {
    ...times,
    template: "base",
    metadata: {},
    env: {},
    on_timeout: "kill",
    auto_resume: false,
    secure: true,
  } as const;
  platform.machines.setSandbox("shop", sandbox.record.id, session);
  expect(await home.backUp()).toMatchObject({ state: "complete" });
  const last = await shop.restore({ app: "shop", as: "copy" });
  expect(last).toMatchObject({ error: null, machines: [{ withoutMemory: null }] });
  expect(platform.volumes.list("copy").map(({ name }) => name)).toEqual(["data"]);
});

test("a set with records that no platform writes touches nothing", { tags: "again", ...PATIENT }, async () => {
  const { volume } = await shop.backUp();
  const { AppRestores } = await import("../../src/apps/app-restores.ts");
  const evil = (path: string) => {
    const store = openStore(path);
    const list = () => store.volumes.list().map((one) => ({ ...one, id: `../../volumes/${volume}` }));
    return { ...store, volumes: { ...store.volumes, list } };
  };
  const restores = new AppRestores({ ...home.platform.restoreParts, openStore: evil });
  await restores.restore("disk", { app: "shop", as: "evil" });
  expect((await shop.idle()).lastRestore?.error?.message).toMatch(/records that no platform writes/);
  expect(await shop.contentOf(volume)).toBe("after");
  expect(shop.platform.apps.has("evil")).toBe(false);
});

test("of two restores at once, one is refused while its client waits", PATIENT, async () => {
  await home.add();
  const { appRestores } = shop.platform;
  const both = await Promise.allSettled(["one", "two"].map((as) => appRestores.restore("disk", { app: "shop", as })));
  expect(both.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  await shop.idle();
});
