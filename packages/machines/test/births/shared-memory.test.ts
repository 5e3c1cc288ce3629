/** Machines that begin with one memory file: it is nobody's to write to, and each gets its own when it is suspended. */
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { SnapshotStore } from "@hibernaut/snapshots";
import { expect, test, vi } from "vitest";
import { shopForEach } from "../shop.ts";

const shop = shopForEach({ settings: { keepWarmS: 0 } });
const never = new AbortController().signal;

const inMachine = (id: string, ...names: string[]) => join(shop.world.folder, "machines", id, ...names);
const templateMemory = (id: string) => {
  const snapshots = join(shop.world.folder, "templates", id, "snapshots");
  return join(snapshots, readdirSync(snapshots)[0] ?? "", "memory");
};
const inodeOf = (path: string) => statSync(path).ino;
const snapshotMemory = (id: string) => inMachine(id, "snapshots", shop.record(id).snapshot?.generation ?? "", "memory");

/** A template of a machine that has answered once. */
async function template(): Promise<{ id: string; memory: string; nonce: string }> {
  const parent = await shop.run();
  const { nonce = "" } = shop.host.guest(parent)?.request() ?? {};
  const made = await shop.platform.templates.createOf("shop", { machine: parent, name: "ready" }, never);
  return { id: made.template.id, memory: templateMemory(made.template.id), nonce };
}

async function born({ skipLaunch = false } = {}): Promise<string> {
  const { record } = await shop.platform.templates.bear("shop", "ready", { skipLaunch }, never);
  if (!skipLaunch) await shop.reach(record.id, "running");
  return record.id;
}

test("machines of a template have its memory file, until each is suspended with what it has become", async () => {
  const { memory, nonce } = await template();
  const before = readFileSync(memory);
  const [one, two] = [await born(), await born({ skipLaunch: true })];
  expect(inodeOf(inMachine(one, "memory"))).toBe(inodeOf(memory));
  expect(inodeOf(snapshotMemory(two))).toBe(inodeOf(memory));
  expect(shop.host.guest(one)?.request()).toEqual({ nonce, count: 2 });
  await shop.suspend(one);
  expect(inodeOf(snapshotMemory(one))).not.toBe(inodeOf(memory));
  await shop.start(two);
  expect(shop.host.guest(two)?.request()).toEqual({ nonce, count: 2 });
  await shop.start(one);
  expect(shop.host.guest(one)?.request()).toEqual({ nonce, count: 3 });
  expect(readFileSync(memory).equals(before), "nobody has written to it").toBe(true);
});

test("a template that is deleted takes nothing from the machines that began with it", async () => {
  const { memory, nonce } = await template();
  const [one, two, three] = [await born(), await born({ skipLaunch: true }), await born()];
  // It has a memory of its own, and still reads the other one.
  await shop.suspend(three);
  await shop.start(three);
  await shop.platform.templates.delete("shop", "ready");
  expect(existsSync(memory)).toBe(false);
  await shop.start(two);
  for (const id of [one, two]) expect(shop.host.guest(id)?.request()).toEqual({ nonce, count: 2 });
  for (const id of [one, two]) await shop.suspend(id);
  for (const id of [one, two]) await shop.start(id);
  for (const id of [one, two]) expect(shop.host.guest(id)?.request()).toEqual({ nonce, count: 3 });
});

test("who has the memory to itself in the end may write to it, and not while someone still reads it", async () => {
  const { id: parent } = await template();
  const [one, two] = [await born(), await born({ skipLaunch: true })];
  await shop.platform.templates.delete("shop", parent);
  // A copy of it is made while it runs: it has a memory of its own from now on, and its VMM still has the other one.
  await shop.platform.forks.fork("shop", one, { count: 1, skipLaunch: true }, never);
  await shop.start(two);
  expect(shop.host.of(two)[0]?.spec.borrowed).toBe(true);
  await shop.suspend(two);
  const last = await born().catch(() => undefined);
  expect(last, "there is no template any more").toBeUndefined();
});

test("a machine that sleeps keeps nothing of the template, once its VMM has ended", async () => {
  const { memory } = await template();
  const id = await born();
  await shop.suspend(id);
  expect(statSync(memory).nlink, "only the template has it").toBe(1);
  expect(readdirSync(inMachine(id)).filter((name) => name.startsWith("memory"))).toEqual(["memory"]);
});

test("what a platform was copying when it was killed, and what a VMM had mapped that ended meanwhile, goes", async () => {
  await template();
  const [one, two] = [await born(), await born({ skipLaunch: true })];
  for (const id of [one, two]) for (const name of ["own", "lent"]) writeFileSync(inMachine(id, `memory.${name}`), "");
  await shop.restart();
  expect(readdirSync(inMachine(one)), "its VMM runs").toEqual(expect.arrayContaining(["memory.lent"]));
  expect(existsSync(inMachine(one, "memory.own"))).toBe(false);
  for (const name of ["own", "lent"]) expect(existsSync(inMachine(two, `memory.${name}`))).toBe(false);
});

test("the next platform finds a guest with a memory that is not its own, and suspends it like any other", async () => {
  const { memory, nonce } = await template();
  const id = await born();
  await shop.restart();
  expect(shop.host.guest(id)?.request()).toEqual({ nonce, count: 2 });
  await shop.suspend(id);
  expect(inodeOf(snapshotMemory(id))).not.toBe(inodeOf(memory));
  await shop.start(id);
  expect(shop.host.guest(id)?.request()).toEqual({ nonce, count: 3 });
});

test("a host whose QEMU has to write to its memory gives each machine a copy, also of what was shared before", async () => {
  const { memory, nonce } = await template();
  const shared = await born({ skipLaunch: true });
  shop.host.borrows = false;
  await shop.restart();
  const copied = await born({ skipLaunch: true });
  expect(inodeOf(snapshotMemory(copied))).not.toBe(inodeOf(memory));
  const before = readFileSync(memory);
  for (const id of [shared, copied]) {
    await shop.start(id);
    expect(shop.host.guest(id)?.request()).toEqual({ nonce, count: 2 });
    expect(shop.host.of(id)[0]?.spec.borrowed ?? false).toBe(false);
    expect(inodeOf(inMachine(id, "memory"))).not.toBe(inodeOf(memory));
  }
  expect(readFileSync(memory).equals(before)).toBe(true);
});

test("a suspend that has no room for a memory leaves the machine running with all that it has", async () => {
  const { nonce } = await template();
  const id = await born();
  shop.host.faults.capture = Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
  shop.machines.suspend("shop", id);
  await expect.poll(() => shop.events(id, "capture_failed").length).toBe(1);
  expect(shop.record(id).state).toBe("running");
  expect(shop.host.guest(id)?.request()).toEqual({ nonce, count: 2 });
});

test("a suspend that cannot even copy the memory does not touch the guest, on a disk that takes nothing either", async () => {
  const { nonce } = await template();
  const id = await born();
  await shop.restart({ settings: { suspendTimeoutMs: 1000 } });
  const broken = Object.assign(new Error("EIO: i/o error"), { code: "EIO" });
  shop.host.faults.prepare = broken;
  const discarding = vi.spyOn(SnapshotStore.prototype, "discard").mockRejectedValue(broken);
  shop.machines.suspend("shop", id);
  await expect.poll(() => shop.record(id).stateReason ?? "").toMatch(/EIO/);
  discarding.mockRestore();
  expect(shop.events(id, "capture_failed").length).toBe(1);
  expect(shop.record(id).state).toBe("running");
  expect(shop.host.guest(id)?.request()).toEqual({ nonce, count: 2 });
});

test("a VMM that ends while its memory is copied is lost, as in any other step", async () => {
  await template();
  const id = await born();
  const [vmm] = shop.host.of(id);
  Object.defineProperty(shop.host.faults, "prepare", {
    configurable: true,
    get() {
      if (vmm !== undefined) shop.host.end(vmm.ref);
      return new Error("process 1 has ended");
    },
  });
  shop.machines.suspend("shop", id);
  await expect
    .poll(() => shop.host.of(id)[0]?.ref.pid, { message: "its restart policy acts" })
    .toBeGreaterThan(vmm?.ref.pid ?? 0);
  expect(shop.events(id, "capture_failed")).toEqual([]);
});

test("a memory that cannot be copied for a wake is kept, and wakes when it can", async () => {
  const { nonce } = await template();
  const id = await born({ skipLaunch: true });
  shop.host.borrows = false;
  await shop.restart();
  const full = Object.assign(new Error("cp ended with code 1"), { stderr: "cp: No space left on device" });
  const copying = vi.spyOn(SnapshotStore.prototype, "stageCopy").mockRejectedValueOnce(full);
  shop.machines.start("shop", id);
  await expect.poll(() => copying.mock.calls.length).toBe(1);
  await expect.poll(() => shop.record(id).stateReason).toMatch(/No space left on device. It is kept/);
  copying.mockRestore();
  expect(shop.record(id).snapshot).not.toBeNull();
  await shop.start(id);
  expect(shop.host.guest(id)?.request()).toEqual({ nonce, count: 2 });
});

test("the copy of a memory for a wake may take longer than a resume", async () => {
  const { nonce } = await template();
  const id = await born({ skipLaunch: true });
  shop.host.borrows = false;
  await shop.restart({ settings: { resumeTimeoutMs: 500 } });
  const { stageCopy } = SnapshotStore.prototype;
  const copying = vi.spyOn(SnapshotStore.prototype, "stageCopy").mockImplementationOnce(async function (
    this: SnapshotStore,
    ...args
  ) {
    await delay(1000);
    args[1].throwIfAborted();
    return stageCopy.apply(this, args);
  });
  await shop.start(id);
  copying.mockRestore();
  expect(shop.host.guest(id)?.request()).toEqual({ nonce, count: 2 });
});
