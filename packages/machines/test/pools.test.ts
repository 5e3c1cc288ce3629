/** Pools of templates on a fake host: who waits in them, who gets whom, and what becomes of them. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { nextLook } from "../src/schedule/due.ts";
import { shopForEach } from "./shop.ts";

/** Room for two of the fake's VMMs. */
const shop = shopForEach({ settings: { keepWarmMemoryMb: 140 } });
const never = new AbortController().signal;
const PATIENT = { timeout: 10_000 };

/** A template of a machine that has answered once, which is gone. */
async function template(warmPool: number): Promise<string> {
  const id = await shop.run();
  shop.host.guest(id)?.request();
  const { template: made } = await shop.platform.templates.createOf(
    "shop",
    { machine: id, name: "ready", warmPool },
    never,
  );
  shop.machines.destroy("shop", id, { force: true });
  await shop.reach(id, "destroyed");
  return made.id;
}

const pool = () => shop.platform.templates.get("shop", "ready").pool;
const filled = async (ready: number) => {
  await expect.poll(() => pool().ready, PATIENT).toBe(ready);
};
const take = (more: { name?: string; env?: Record<string, string>; skipLaunch?: boolean } = {}) =>
  shop.platform.templates.bear("shop", "ready", more, never);
const waiting = () =>
  shop.world.store.machines.list("shop").filter(({ pooled, state }) => pooled === true && state !== "destroyed");

test("a machine out of the pool only wakes: it is itself already, has what the template had, and is replaced", async () => {
  await template(2);
  await filled(2);
  const ids = waiting().map(({ id }) => id);
  expect(shop.machines.list("shop")).toEqual([]);
  const { record } = await take({ name: "web" });
  expect(ids).toContain(record.id);
  await shop.reach(record.id, "running");
  expect(shop.record(record.id)).toMatchObject({ name: "web", cordoned: false, lastBoot: { kind: "warm" } });
  expect(shop.host.guest(record.id)?.state.hostname).toBe(record.id);
  expect(shop.host.guest(record.id)?.request()?.count).toBe(2);
  expect(shop.events(record.id, "taken")).toHaveLength(1);
  await filled(2);
  expect(shop.platform.templates.get("shop", "ready").machines).toEqual([record.id]);
});

test("two takers of the last machine get two machines, and so does one who wants another environment", async () => {
  await template(1);
  await filled(1);
  const [one, other] = await Promise.all([take(), take()]);
  expect(one.record.id).not.toBe(other.record.id);
  for (const { record } of [one, other]) await shop.reach(record.id, "running");
  await filled(1);
  const [next] = waiting();
  const third = await take({ env: { ROLE: "c" } });
  expect(third.record.id).not.toBe(next?.id);
  await shop.reach(third.record.id, "running");
  expect(shop.record(third.record.id).config.env).toMatchObject({ ROLE: "c" });
});

test("nobody else knows the machines of a pool, or can do something to them", async () => {
  await template(1);
  await filled(1);
  const [one] = waiting();
  const id = one?.id ?? "";
  for (const word of [id, one?.name ?? "", id.slice(0, 8)])
    expect(() => shop.machines.start("shop", word)).toThrow("has no machine");
  expect(shop.machines.all()).toEqual([]);
});

test("only as many are kept in memory as fit together with those that were in use", async () => {
  await template(3);
  await filled(3);
  expect(pool()).toMatchObject({ size: 3, ready: 3, warm: 2, reason: null });
  const { warmUntil } = await take({ skipLaunch: true });
  expect(warmUntil).not.toBeNull();
});

test("a smaller pool destroys what is too much, and a deleted template all that waits, with nothing left", async () => {
  const id = await template(3);
  await filled(3);
  shop.platform.templates.setPool("shop", "ready", 1);
  await expect.poll(() => waiting().length, PATIENT).toBe(1);
  const { record } = await take();
  await shop.platform.templates.delete("shop", id);
  expect(waiting()).toEqual([]);
  await expect.poll(() => readdirSync(join(shop.world.folder, "machines")), PATIENT).toEqual([record.id]);
  expect(existsSync(join(shop.world.folder, "templates", id))).toBe(false);
  await shop.reach(record.id, "running");
});

test("an app with a pool is deleted with it, while the pool is still being filled", async () => {
  await template(2);
  // The second may follow before anyone looks.
  await expect.poll(() => pool().ready, PATIENT).toBeGreaterThan(0);
  await shop.platform.apps.delete("shop", { force: true });
  expect(readdirSync(join(shop.world.folder, "machines"))).toEqual([]);
});

test("the next platform finds the pool, and wakes each machine once to have it in memory again", async () => {
  await template(2);
  await filled(2);
  const before = waiting().map(({ id }) => id);
  await shop.restart();
  await expect.poll(() => pool().warm, PATIENT).toBe(2);
  expect(waiting().map(({ id }) => id)).toEqual(before);
  const { record } = await take();
  await shop.reach(record.id, "running");
  expect(shop.record(record.id).lastBoot?.kind).toBe("warm");
  expect(shop.host.guest(record.id)?.request()?.count).toBe(2);
});

test("a pool that cannot be filled says why, and the template works without it", async () => {
  const id = await shop.run();
  shop.platform.quotas.set("shop", { machines: 2 });
  await shop.platform.templates.createOf("shop", { machine: id, name: "ready", warmPool: 3 }, never);
  await expect.poll(() => pool().reason, PATIENT).toContain("quota");
  expect(pool()).toMatchObject({ size: 3, ready: 1 });
});

test("a schedule does not start a machine in a pool, and counts from when it is taken", async () => {
  const id = await shop.run({ schedule: "hourly" });
  await shop.platform.templates.createOf("shop", { machine: id, name: "ready", warmPool: 1 }, never);
  await filled(1);
  const [one] = waiting();
  expect(one && nextLook(one, new Date())).toBeUndefined();
  const { record, nextRun } = await take({ skipLaunch: true });
  expect(record.id).toBe(one?.id);
  expect(nextRun).not.toBeNull();
});

test("while the pool is being filled, nobody gets a machine that the pool is not done with", async () => {
  await template(0);
  shop.platform.templates.setPool("shop", "ready", 3);
  const ids: string[] = [];
  for (let count = 0; count < 6; count += 1) ids.push((await take()).record.id);
  expect(new Set(ids).size).toBe(6);
  await filled(3);
  for (const id of ids) {
    await shop.reach(id, "running");
    expect(shop.host.guest(id)?.request()?.count).toBe(2);
    expect(shop.events(id, "suspend").filter(({ details }) => details["by"] === "pool").length).toBeLessThanOrEqual(1);
  }
});

test("secrets that change give up what waits, and the pool says that the template is too old for it", async () => {
  await template(1);
  await filled(1);
  const [one] = waiting();
  shop.platform.secrets.set("shop", { KEY: "new" });
  await expect
    .poll(() => pool(), PATIENT)
    .toMatchObject({ ready: 0, reason: expect.stringMatching(/secrets.*new template/) });
  await expect.poll(() => waiting().length, PATIENT).toBe(0);
  expect(shop.world.store.machines.get(one?.id ?? "")?.state).toBe("destroyed");
});

test("the stream of events tells nothing of machines that wait", async () => {
  await template(1);
  await filled(1);
  const [one] = waiting();
  const told = () => shop.world.store.outbox.after(0, 1000).filter(({ machine }) => machine === one?.id);
  expect(told()).toEqual([]);
  const { record } = await take();
  await shop.reach(record.id, "running");
  expect(told().map(({ type }) => type)).toEqual(expect.arrayContaining(["machine.taken", "machine.running"]));
});

test("a machine that may not start now stays in its pool, and is tried again later", async () => {
  await template(1);
  await filled(1);
  const [one] = waiting();
  await shop.restart({
    settings: { memoryOvercommit: 1 },
    wrap: (deps) => ({ ...deps, hostMemory: { available: () => 0 } }),
  });
  await expect.poll(() => pool().reason, PATIENT).not.toBeNull();
  expect(waiting().map(({ id }) => id)).toEqual([one?.id]);
  expect(pool().ready).toBe(1);
});

test("one that could not be started is not taken: the quota says so, and the pool keeps it", async () => {
  await template(1);
  await filled(1);
  await shop.run();
  shop.platform.quotas.set("shop", { running: 1 });
  await expect(take()).rejects.toThrow("quota");
  expect(pool().ready).toBe(1);
  const { record } = await take({ skipLaunch: true });
  expect(record.state).toBe("suspended");
});

test("what waits has passed its checks once, and one whose app does not work is not given to anyone", async () => {
  const asked: string[] = [];
  let fault: string | undefined = "its check web does not pass: 503 down";
  const passChecks = async ({ address }: { address: string }) => {
    asked.push(address);
    return fault;
  };
  await shop.restart({ settings: { keepWarmMemoryMb: 140 }, wrap: (deps) => ({ ...deps, passChecks }) });
  await template(1);
  await expect.poll(() => pool().reason, PATIENT).toContain("its check web does not pass: 503 down");
  expect([pool().ready, waiting()]).toEqual([0, []]);
  fault = undefined;
  shop.platform.templates.setPool("shop", "ready", 2);
  await filled(2);
  expect(asked).toEqual(expect.arrayContaining(waiting().map(({ address }) => address)));
});
