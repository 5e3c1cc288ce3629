/** The life of previews on a fake host: made, renewed, and gone with all that was theirs while production keeps all. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { SMALL } from "../../platform/test/helpers/fake-world.ts";
import { PreviewExpiry } from "../src/previews/expiry.ts";
import { shopForEach } from "./shop.ts";

const shop = shopForEach({ quota: { previews: 2 } });

const HOUR = 3_600_000;
const GRACE = 600_000;
const WITH_DATA = { ...SMALL, mounts: [{ volume: "data", path: "/data" }] };

const never = new AbortController().signal;
const told: string[] = [];
const note = (_fields: object, message: string) => void told.push(message);
const log = { info: note, warn: note, error: note };

/** Clocks that a test sets, and the expiry that goes by them. */
function clocks() {
  const at = { now: Date.parse("2026-01-01T00:00:00.000Z"), steady: 0 };
  const { apps, previews } = shop.platform;
  const expiry = new PreviewExpiry({
    list: () => apps.list(),
    decides: () => true,
    expire: async (preview) => previews.expire(preview),
    destroy: ({ name }) => apps.delete(name, { force: true }),
    graceMs: GRACE,
    log: log,
    now: () => at.now,
    steady: () => at.steady,
  });
  return {
    in: (ms: number) => new Date(at.now + ms).toISOString(),
    expiry,
    /** Lets time pass. Looks at its beginning and its end. */
    async pass(ms: number, steadyMs = ms) {
      await expiry.look();
      at.now += ms;
      at.steady += steadyMs;
      await expiry.look();
    },
  };
}

async function machine(app: string) {
  const { record } = await shop.machines.create(app, { config: WITH_DATA });
  await shop.machines.wait(app, record.id, ["running"], { timeoutMs: 5000 });
  return record.id;
}

const names = () => shop.platform.apps.list().map(({ name }) => name);
const events = (app: string) =>
  shop.world.store.outbox
    .after(0, 1000)
    .filter((event) => event.app === app && event.type.startsWith("app."))
    .map(({ type }) => type);

test("a preview is gone after its time, with its machines and volumes, and production keeps all", async () => {
  const { pass, in: time } = clocks();
  shop.platform.previews.put("shop", { name: "pr-12", expiresAt: time(HOUR) });
  const [own, others] = [await machine("shop"), await machine("pr-12--shop")];
  const [kept, lost] = ["shop", "pr-12--shop"].map((app) => shop.volumes.list(app)[0]?.id ?? "");
  await pass(HOUR - 1);
  expect(names()).toEqual(["pr-12--shop", "shop"]);
  await pass(1);
  await pass(GRACE);
  // The decision is stored first, and carried out by the next look.
  expect(shop.platform.apps.get("pr-12--shop").preview).toMatchObject({ expired: true });
  await pass(1);
  expect(names()).toEqual(["shop"]);
  expect(events("pr-12--shop")).toEqual(["app.created", "app.expired", "app.deleted"]);
  expect(shop.world.store.machines.get(others)?.state ?? "destroyed").toBe("destroyed");
  expect(shop.record(own).state).toBe("running");
  expect(shop.volumes.list("shop").map(({ id }) => id)).toEqual([kept]);
  const onDisk = await readdir(join(shop.world.folder, "volumes"));
  expect(onDisk).toContain(kept);
  expect(onDisk).not.toContain(lost);
});

test("its templates go with it, and those of production stay, which it can use in no way", async () => {
  const { pass, in: time } = clocks();
  const { previews, templates, restores } = shop.platform;
  previews.put("shop", { name: "pr-12", expiresAt: time(HOUR) });
  const keep = async (app: string) => {
    const { record } = await shop.machines.create(app, { config: SMALL });
    await shop.machines.wait(app, record.id, ["running"], { timeoutMs: 5000 });
    const { template } = await templates.createOf(app, { machine: record.id, name: "ready" }, never);
    return { machine: record.id, template: template.id };
  };
  const [production, preview] = [await keep("shop"), await keep("pr-12--shop")];
  const none = { code: "not_found" };
  await expect(templates.bear("pr-12--shop", production.template, {}, never)).rejects.toMatchObject(none);
  await expect(templates.createOf("pr-12--shop", { machine: production.machine }, never)).rejects.toMatchObject(none);
  await expect(
    restores.restore("pr-12--shop", preview.machine, { template: production.template }, never),
  ).rejects.toMatchObject(none);
  const onDisk = () => readdir(join(shop.world.folder, "templates"));
  expect(await onDisk()).toContain(preview.template);
  await pass(HOUR);
  await pass(GRACE);
  await pass(1);
  expect(names()).toEqual(["shop"]);
  expect(shop.world.store.templates.list("pr-12--shop")).toEqual([]);
  expect((await onDisk()).filter((name) => name !== "births")).toEqual([production.template]);
  expect(await templates.bear("shop", "ready", {}, never)).toMatchObject({ record: { app: "shop" } });
});

test("a deploy renews it, also in the last moment, and no longer once its end is decided", async () => {
  const { pass, in: time } = clocks();
  const put = (expiresAt: string) => shop.platform.previews.put("shop", { name: "pr-12", expiresAt });
  put(time(HOUR));
  await pass(HOUR);
  await pass(GRACE - 1);
  put(time(HOUR));
  await pass(GRACE);
  expect(shop.platform.apps.get("pr-12--shop").preview).not.toHaveProperty("expired");
  await pass(HOUR);
  await pass(GRACE);
  expect(() => put(time(HOUR))).toThrow(/^The time of preview pr-12--shop was over, and it is being destroyed\./);
  await pass(1);
  // And then there is a new one.
  expect(put(time(HOUR)).preview).toMatchObject({ of: "shop" });
});

test("an end that was decided is carried out by the next platform", async () => {
  const { pass, in: time } = clocks();
  shop.platform.previews.put("shop", { name: "pr-12", expiresAt: time(0) });
  await machine("pr-12--shop");
  await pass(GRACE);
  await shop.restart();
  const next = clocks();
  await next.expiry.look();
  expect(names()).toEqual(["shop"]);
});

test("a clock that was wrong after a boot, and was set, has destroyed nothing", async () => {
  const { pass, in: time } = clocks();
  for (const name of ["pr-12", "pr-13"]) shop.platform.previews.put("shop", { name, expiresAt: time(72 * HOUR) });
  await pass(10_000 * HOUR, GRACE - 1);
  await pass(-10_000 * HOUR, 0);
  await pass(GRACE);
  expect(names()).toEqual(["pr-12--shop", "pr-13--shop", "shop"]);
});

test("an app that has the name of a preview is neither taken over nor destroyed", async () => {
  const { pass, in: time } = clocks();
  shop.platform.apps.create("pr-12--shop");
  expect(() => shop.platform.previews.put("shop", { name: "pr-12", expiresAt: time(0) })).toThrow(
    /^pr-12--shop is already the name of another app\. Choose another name/,
  );
  expect(() => shop.platform.previews.get("shop", "pr-12")).toThrow(/^App shop has no preview pr-12\./);
  for (let day = 0; day < 5; day += 1) await pass(24 * HOUR);
  expect(names()).toEqual(["pr-12--shop", "shop"]);
});

test("what cannot be destroyed yet is tried again, and its reason told once", async () => {
  const { expiry, pass, in: time } = clocks();
  shop.platform.previews.put("shop", { name: "pr-12", expiresAt: time(0) });
  await pass(GRACE);
  const { apps } = shop.platform;
  const broken = new PreviewExpiry({
    list: () => apps.list(),
    decides: () => false,
    expire: () => Promise.reject(new Error("not this one's to decide")),
    destroy: () => Promise.reject(new Error("Host b is away.")),
    graceMs: GRACE,
    log: log,
  });
  for (let look = 0; look < 3; look += 1) await broken.look();
  expect(told.filter((line) => line.includes("could not be destroyed"))).toHaveLength(1);
  await expiry.look();
  expect(names()).toEqual(["shop"]);
});

describe("there can be", () => {
  const put = (of: string, name: string) =>
    shop.platform.previews.put(of, { name, expiresAt: "2099-01-01T00:00:00.000Z" });

  test("no preview of a preview, nor of an app that does not exist", () => {
    put("shop", "pr-12");
    expect(() => put("pr-12--shop", "more")).toThrow(
      /^App pr-12--shop is a preview itself\. Make another preview of shop/,
    );
    expect(() => put("none", "pr-12")).toThrow(expect.objectContaining({ code: "not_found" }));
  });

  test("as many as the quota says, each with the limits that production has of its own", () => {
    shop.platform.quotas.set("shop", { machines: 3, previews: 2 });
    for (const name of ["pr-1", "pr-2", "pr-1"]) put("shop", name);
    expect(() => put("shop", "pr-3")).toThrow(expect.objectContaining({ code: "failed_precondition" }));
    expect(() => put("shop", "pr-3")).toThrow(/^The quota of app shop for previews is 2: it has 2/);
    expect(shop.platform.quotas.limitsOf("pr-1--shop")).toMatchObject({ machines: 3 });
  });

  test("none of a later app that the earlier one's previews would belong to", async () => {
    put("shop", "pr-12");
    await shop.platform.apps.delete("shop");
    // Created at another moment than the first one, which tests are fast enough to miss.
    await expect.poll(() => Date.now() > Date.parse(shop.platform.apps.get("pr-12--shop").createdAt) + 1).toBe(true);
    shop.platform.apps.create("shop");
    expect(shop.platform.previews.list("shop")).toEqual([]);
    expect(() => put("shop", "pr-12")).toThrow(/a preview of an earlier app of that name/);
  });
});

test("secrets are copied when that is asked for, and its own stay", () => {
  const { previews, secrets } = shop.platform;
  previews.put("shop", { name: "pr-12", expiresAt: "2099-01-01T00:00:00.000Z" });
  secrets.copy("shop", "pr-12--shop");
  secrets.set("shop", { API_KEY: "real", LOG: "warn" });
  expect(secrets.list("pr-12--shop")).toEqual([]);
  secrets.set("pr-12--shop", { LOG: "debug", OWN: "1" });
  secrets.copy("shop", "pr-12--shop");
  const digests = (app: string) => Object.fromEntries(secrets.list(app).map(({ name, digest }) => [name, digest]));
  expect(digests("pr-12--shop")).toEqual({ ...digests("shop"), OWN: expect.any(String) });
});
