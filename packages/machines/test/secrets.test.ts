import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { describe, expect, test } from "vitest";
import { SMALL } from "../../platform/test/helpers/fake-world.ts";
import { shopForEach } from "./shop.ts";

const shop = shopForEach();
const VALUE = "s3cret-value";
const env = (id: string) => shop.host.guest(id)?.env ?? {};
const generations = (id: string) => readdirSync(join(shop.world.folder, "machines", id, "snapshots"));

describe("a suspended machine", () => {
  test("stays suspended without its snapshot, and cold starts with the new secrets", async () => {
    const id = await shop.sleeper();
    const before = shop.record(id);
    expect(shop.platform.secrets.set("shop", { TOKEN: VALUE })).toEqual({ discarded: [id], pending: [] });
    expect(shop.record(id)).toMatchObject({ state: "suspended", snapshot: null });
    await expect.poll(() => generations(id)).toEqual([]);
    const { version, config, bundleVersion, resetLayer } = before;
    expect(shop.record(id)).toMatchObject({
      snapshot: null,
      pending: null,
      version,
      config,
      bundleVersion,
      resetLayer,
    });
    await shop.start(id);
    expect(shop.record(id).lastBoot).toMatchObject({ kind: "cold", reason: "secrets_changed" });
    expect(env(id)).toMatchObject({ TOKEN: VALUE });
  });

  test("also loses its snapshot to an unset", async () => {
    const id = await shop.run();
    shop.platform.secrets.set("shop", { TOKEN: VALUE });
    await shop.suspend(id);
    expect(shop.platform.secrets.unset("shop", "TOKEN")).toEqual({ discarded: [id], pending: [] });
    await shop.start(id);
    expect(shop.record(id).lastBoot).toMatchObject({ kind: "cold", reason: "secrets_changed" });
    expect(env(id)).not.toHaveProperty("TOKEN");
  });

  test("does not move to another guest bundle", async () => {
    const id = await shop.sleeper();
    await shop.platform.close();
    shop.world.bundleVersion = "bundle-2";
    await shop.open();
    shop.platform.secrets.set("shop", { TOKEN: VALUE });
    await shop.reach(id, "suspended");
    expect(shop.record(id).bundleVersion).toBe("bundle-1");
  });

  test("keeps its snapshot in a dry run, when nothing changes, and when the app is another one", async () => {
    const id = await shop.run();
    shop.platform.secrets.set("shop", { TOKEN: VALUE });
    shop.platform.apps.create("blog");
    await shop.suspend(id);
    expect(shop.platform.secrets.set("shop", { TOKEN: "new" }, { dryRun: true })).toEqual({
      discarded: [id],
      pending: [],
    });
    expect(shop.platform.secrets.unset("shop", "TOKEN", { dryRun: true })).toEqual({ discarded: [id], pending: [] });
    expect(shop.platform.secrets.set("shop", { TOKEN: VALUE })).toEqual({ discarded: [], pending: [] });
    expect(shop.platform.secrets.set("blog", { TOKEN: "new" })).toEqual({ discarded: [], pending: [] });
    await shop.start(id);
    expect(shop.record(id).lastBoot).toMatchObject({ kind: "resume" });
  });

  test("that is started right after cold starts; one that was started before has resumed", async () => {
    const id = await shop.sleeper();
    shop.platform.secrets.set("shop", { TOKEN: VALUE });
    await shop.start(id);
    expect(env(id)).toMatchObject({ TOKEN: VALUE });
    expect(shop.host.restored).toEqual([]);
    await shop.suspend(id);
    shop.machines.start("shop", id);
    await expect.poll(() => shop.host.restored).toHaveLength(1);
    expect(shop.platform.secrets.set("shop", { TOKEN: "late" })).toEqual({ discarded: [], pending: [id] });
    await shop.reach(id, "running");
    expect(shop.record(id).lastBoot).toMatchObject({ kind: "resume" });
  });

  test("whose start failed but kept the snapshot loses it too, and still says why it failed", async () => {
    const id = await shop.sleeper();
    shop.host.faults.restore = new HibernautError("unavailable", "no memory for QEMU");
    shop.machines.start("shop", id);
    await shop.reach(id, "failed");
    expect(shop.record(id).snapshot).not.toBeNull();
    expect(shop.platform.secrets.set("shop", { TOKEN: VALUE })).toEqual({ discarded: [id], pending: [] });
    await shop.reach(id, "failed");
    expect(shop.record(id)).toMatchObject({
      snapshot: null,
      stateReason: expect.stringContaining("no memory for QEMU"),
    });
    await shop.start(id);
    expect(shop.record(id).lastBoot).toMatchObject({ kind: "cold", reason: "secrets_changed" });
  });

  test("does not resume a snapshot that survived the change, as after a kill of the platform", async () => {
    const id = await shop.sleeper();
    await shop.restart({
      wrap: (deps) => {
        deps.secrets.set("shop", { TOKEN: VALUE });
        return deps;
      },
    });
    await shop.start(id);
    expect(shop.record(id).lastBoot).toMatchObject({
      kind: "cold",
      reason: expect.stringMatching(/^secrets_changed: /),
    });
    expect(env(id)).toMatchObject({ TOKEN: VALUE });
  });
});

describe("a running machine", () => {
  test("keeps what it has, even across a suspend, until it is restarted", async () => {
    const id = await shop.run();
    expect(shop.platform.secrets.set("shop", { TOKEN: VALUE })).toEqual({ discarded: [], pending: [id] });
    expect(env(id)).not.toHaveProperty("TOKEN");
    await shop.suspend(id);
    await shop.start(id);
    expect(shop.record(id).lastBoot).toMatchObject({ kind: "resume" });
    shop.machines.restart("shop", id);
    await shop.reach(id, "running");
    expect(env(id)).toMatchObject({ TOKEN: VALUE });
  });

  test("that is being suspended counts as running", async () => {
    const id = await shop.run();
    const release = shop.hold("capture");
    shop.machines.suspend("shop", id);
    await expect.poll(() => shop.host.of(id)[0]?.running).toBe(false);
    expect(shop.platform.secrets.set("shop", { TOKEN: VALUE })).toEqual({ discarded: [], pending: [id] });
    release();
    await shop.reach(id, "suspended");
    await shop.start(id);
    expect(shop.record(id).lastBoot).toMatchObject({ kind: "resume" });
  });
});

test("a cold start without the key fails with an explanation, and costs nothing", async () => {
  const id = await shop.run();
  shop.platform.secrets.set("shop", { TOKEN: VALUE });
  await shop.suspend(id);
  shop.platform.secrets.set("shop", { TOKEN: "other" });
  await shop.reach(id, "suspended");
  rmSync(join(shop.world.folder, "secrets.key"));
  shop.machines.start("shop", id);
  await shop.reach(id, "failed");
  expect(shop.record(id).stateReason).toContain("secrets.key, is missing");
  expect(shop.record(id).resetLayer).toBe(false);
  expect(shop.platform.secrets.list("shop")).toHaveLength(1);
});

test("no secret is in a record, an event, a log or a file of the host", async () => {
  const id = await shop.run();
  shop.platform.secrets.set("shop", { TOKEN: VALUE });
  await shop.suspend(id);
  shop.platform.secrets.set("shop", { OTHER: VALUE });
  await shop.start(id);
  shop.machines.restart("shop", id);
  await shop.reach(id, "running");
  expect(env(id)).toMatchObject({ TOKEN: VALUE, OTHER: VALUE });
  const { spec } = shop.host.of(id)[0] ?? {};
  const seen = [
    shop.machines.get("shop", id),
    shop.machines.events("shop", id, 1000),
    shop.platform.secrets.list("shop"),
    spec,
  ];
  expect(JSON.stringify([seen, shop.world.logged])).not.toContain(VALUE);
  for (const file of readdirSync(shop.world.folder, { recursive: true, withFileTypes: true })) {
    if (!file.isFile() || file.name === "memory") continue;
    expect(readFileSync(join(file.parentPath, file.name)).includes(VALUE), file.name).toBe(false);
  }
});

test("a deleted app leaves no secrets behind", async () => {
  shop.platform.secrets.set("shop", { TOKEN: VALUE });
  await shop.machines.create("shop", { config: SMALL, skipLaunch: true });
  await shop.platform.apps.delete("shop", { force: true });
  shop.platform.apps.create("shop");
  expect(shop.platform.secrets.list("shop")).toEqual([]);
  expect(() => shop.platform.secrets.unset("shop", "TOKEN")).toThrow(expect.objectContaining({ code: "not_found" }));
});
