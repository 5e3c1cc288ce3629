/** Leases of clients on machines: who gets one, how long it lasts, and what it survives. */
import { HibernautError } from "@hibernaut/domain/errors";
import { DEFAULT_LEASE_TTL_S } from "@hibernaut/domain/lease";
import { newLease } from "@hibernaut/machines";
import { beforeEach, expect, test } from "vitest";
import { shopForEach } from "./shop.ts";

const START = Date.parse("2026-01-01T00:00:00Z");
let now = START;
const shop = shopForEach({ wrap: (deps) => ({ ...deps, clock: () => new Date(now) }) });
beforeEach(() => {
  now = START;
});

const never = new AbortController().signal;
const WISH = { owner: "ci", description: "deploys 7" };
const leases = () => shop.platform.leases;
const take = (id: string, more: { ttl?: number } = {}, nonce?: string) =>
  leases().take("shop", id, { ...WISH, ...more }, nonce);
const passes = (id: string, nonce?: string) => leases().requirePassage("shop", id, nonce);

/** The code of what `act` throws; undefined when it does not. */
function codeOf(act: () => unknown): string | undefined {
  try {
    act();
    return undefined;
  } catch (error) {
    return (error as HibernautError).code;
  }
}

test("a lease keeps out everyone without its nonce, until its time is over", async () => {
  const id = await shop.create();
  const { nonce, lease, version } = take(id);
  expect(nonce).toMatch(/^[0-9a-f]{32}$/);
  expect(version).toBe(shop.record(id).version);
  expect(lease).toMatchObject({ ...WISH, expiresAt: new Date(START + DEFAULT_LEASE_TTL_S * 1000).toISOString() });
  expect(JSON.stringify([shop.record(id), shop.events(id)])).not.toContain(nonce);
  passes(id, nonce);
  for (const wrong of [undefined, "", "x", nonce.slice(1), `${nonce}0`, lease.nonceHash])
    expect(
      codeOf(() => passes(id, wrong)),
      String(wrong),
    ).toBe("lease_held");
  now = START + DEFAULT_LEASE_TTL_S * 1000 - 1;
  expect(codeOf(() => passes(id))).toBe("lease_held");
  now += 1;
  passes(id);
  expect(() => leases().get("shop", id)).toThrow("lease not found");
});

test("who believes to have a lease that has ended changes nothing, and does not renew it", async () => {
  const id = await shop.create();
  const { nonce } = take(id, { ttl: 10 });
  now += 10_000;
  for (const act of [() => passes(id, nonce), () => take(id, {}, nonce)])
    expect(codeOf(act)).toBe("failed_precondition");
  expect(codeOf(() => leases().release("shop", id, nonce))).toBe("not_found");
  const next = take(id);
  expect(codeOf(() => passes(id, nonce))).toBe("lease_held");
  passes(id, next.nonce);
});

test("its nonce renews it, and the history tells of the first only", async () => {
  const id = await shop.create();
  const { nonce } = take(id, { ttl: 10 });
  now += 9_000;
  const renewed = leases().take("shop", id, { owner: "helper", ttl: 10 }, nonce);
  expect(renewed).toMatchObject({ nonce, lease: { ...WISH, expiresAt: new Date(now + 10_000).toISOString() } });
  expect(codeOf(() => take(id))).toBe("lease_held");
  expect(shop.events(id, "lease_taken")).toHaveLength(1);
  leases().release("shop", id, nonce);
  passes(id);
  expect(shop.events(id, "lease_released")).toMatchObject([{ details: { owner: "ci" } }]);
});

test("only its nonce gives it back; anyone who says so ends it, and the history says that, too", async () => {
  const id = await shop.create();
  expect(codeOf(() => leases().release("shop", id, undefined))).toBe("not_found");
  expect(codeOf(() => leases().clear("shop", id))).toBe("not_found");
  const { nonce } = take(id);
  for (const wrong of [undefined, "wrong"])
    expect(codeOf(() => leases().release("shop", id, wrong))).toBe("lease_held");
  leases().clear("shop", id);
  passes(id);
  expect(codeOf(() => passes(id, nonce))).toBe("failed_precondition");
  expect(shop.events(id, "lease_cleared")).toMatchObject([{ details: { owner: "ci" } }]);
});

test("it survives the platform, updates and sleep, and does not keep a snapshot from being used", async () => {
  const id = await shop.sleeper();
  const { version, snapshot } = shop.record(id);
  const { nonce } = take(id);
  expect(shop.record(id)).toMatchObject({ version, snapshot });
  await shop.restart();
  expect(codeOf(() => passes(id))).toBe("lease_held");
  passes(id, nonce);
  await shop.start(id);
  expect(shop.record(id).lastBoot).toMatchObject({ kind: "resume" });
  await shop.update(id, { env: { A: "1" } });
  await shop.reach(id, "running");
  expect(codeOf(() => passes(id))).toBe("lease_held");
});

test("what is born of a machine has none, and a template has none to give", async () => {
  const id = await shop.run();
  take(id, { ttl: 3600 });
  const forks = await shop.platform.forks.fork("shop", id, { count: 1 }, never);
  const { template } = await shop.platform.templates.createOf("shop", { machine: id, name: "ready" }, never);
  expect(template.machine.lease).toBeNull();
  const born = await shop.platform.templates.bear("shop", "ready", {}, never);
  for (const { record } of [...forks, born]) passes(record.id);
  expect(codeOf(() => passes(id))).toBe("lease_held");
});

test.each(["a configuration", "a template", "a pool"])(
  "a machine made of %s can have one from the beginning",
  async (of) => {
    const source = await shop.run();
    const warmPool = of === "a pool" ? 1 : 0;
    await shop.platform.templates.createOf("shop", { machine: source, name: "ready", warmPool }, never);
    await expect
      .poll(() => shop.platform.templates.get("shop", "ready").pool.ready, { timeout: 10_000 })
      .toBe(warmPool);
    const { nonce, terms } = newLease({ owner: "ci", ttl: 30 });
    const { record } =
      of === "a configuration"
        ? await shop.machines.create("shop", { config: { image: "app:1" }, skipLaunch: true, lease: terms })
        : await shop.platform.templates.bear("shop", "ready", { skipLaunch: true, lease: terms }, never);
    expect(record.lease?.expiresAt).toBe(new Date(now + 30_000).toISOString());
    expect(codeOf(() => passes(record.id))).toBe("lease_held");
    passes(record.id, nonce);
  },
);

test("a machine that is gone has no lease to take, and holds nobody back", async () => {
  const id = await shop.create();
  take(id);
  shop.machines.destroy("shop", id);
  await shop.reach(id, "destroyed");
  passes(id);
  expect(() => take(id)).toThrow(HibernautError);
});
