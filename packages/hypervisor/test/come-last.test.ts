/** A process that lets others come before it, as the kernel tells it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { getPriority } from "node:os";
import { join } from "node:path";
import { run } from "@hibernaut/lib/exec";
import { expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import type { VmmRef } from "../src/contract.ts";
import { comeLast } from "../src/qemu/come-last.ts";
import { startTicks } from "../src/qemu/process.ts";
import { threadTimesOf } from "../src/qemu/thread-times.ts";

const isRoot = process.getuid?.() === 0;

/** A program in a session of its own, as a QEMU is. */
async function started(): Promise<ChildProcess & { pid: number; vmm: VmmRef }> {
  const child = spawn("sleep", ["600"], { detached: true, stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child, "spawn");
  const { pid = 0 } = child;
  return Object.assign(child, { pid, vmm: { machineId: "sleeper", pid, startTicks: (await startTicks(pid)) ?? "" } });
}

test.runIf(isRoot)("its threads and its session come later, and as before", async () => {
  const child = await started();
  const session = `/proc/${child.pid}/autogroup`;
  const place = async () => {
    const { stdout } = await run("chrt", ["--pid", String(child.pid)], { timeoutMs: 10_000 });
    const nice = existsSync(session) ? Number((await readFile(session, "utf8")).split(" ").at(-1)) : undefined;
    return [stdout.match(/SCHED_\w+/)?.[0], nice];
  };
  const unlessThereAreNone = (nice: number) => (existsSync(session) ? nice : undefined);
  expect(await comeLast(child.vmm, undefined, true)).toBe(true);
  expect(await place()).toEqual(["SCHED_IDLE", unlessThereAreNone(19)]);
  expect(await comeLast(child.vmm, undefined, false)).toBe(true);
  expect(await place()).toEqual(["SCHED_OTHER", unlessThereAreNone(5)]);
});

test.runIf(isRoot)("a change that ended half-way is made whole", async () => {
  // Node has threads of its own.
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { detached: true, stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child, "spawn");
  const { pid = 0 } = child;
  const vmm = { machineId: "half", pid, startTicks: (await startTicks(pid)) ?? "" };
  const policies = async () => {
    const { stdout } = await run("chrt", ["--all-tasks", "--pid", String(pid)], { timeoutMs: 10_000 });
    return new Set(stdout.match(/SCHED_\w+/g));
  };
  await expect.poll(async () => (await threadTimesOf(vmm))?.size).toBeGreaterThan(4);
  await comeLast(vmm, undefined, true);
  await run("chrt", ["--other", "--pid", "0", String(pid)], { timeoutMs: 10_000 });
  expect((await policies()).size).toBe(2);
  await comeLast(vmm, undefined, false);
  expect([...(await policies())]).toEqual(["SCHED_OTHER"]);
});

test.runIf(isRoot)("where it has a control group, that gets a weight by the CPUs that it was given", async () => {
  const [child, cgroup] = [await started(), await tempFolder()];
  await writeFile(join(cgroup, "cpu.max"), "250000 100000\n");
  await writeFile(join(cgroup, "cpu.weight"), "");
  const weight = async () => readFile(join(cgroup, "cpu.weight"), "utf8");
  await comeLast(child.vmm, cgroup, true);
  expect(await weight()).toBe("22");
  await comeLast(child.vmm, cgroup, false);
  expect(await weight()).toBe("200");
  expect(getPriority(child.pid), "the group alone decides").toBe(getPriority());
});

test.runIf(isRoot)("its group is idle where the kernel has that, and then has its weight again", async () => {
  const [child, cgroup] = [await started(), await tempFolder()];
  await writeFile(join(cgroup, "cpu.max"), "250000 100000\n");
  for (const file of ["cpu.weight", "cpu.idle"]) await writeFile(join(cgroup, file), "");
  const group = () => Promise.all(["cpu.idle", "cpu.weight"].map((file) => readFile(join(cgroup, file), "utf8")));
  await comeLast(child.vmm, cgroup, true);
  expect(await group()).toEqual(["1", ""]);
  await comeLast(child.vmm, cgroup, false);
  expect(await group(), "which the kernel has forgotten").toEqual(["0", "200"]);
});

test.runIf(isRoot)("what its threads had of the CPUs is known, until it ends", async () => {
  const child = spawn("sh", ["-c", "while :; do :; done"], { detached: true, stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child, "spawn");
  const { pid = 0 } = child;
  const vmm = { machineId: "greedy", pid, startTicks: (await startTicks(pid)) ?? "" };
  await expect.poll(async () => (await threadTimesOf(vmm))?.get(pid)?.ranMs).toBeGreaterThan(20);
  expect((await threadTimesOf(vmm))?.get(pid)?.waitedMs).toBeGreaterThanOrEqual(0);
  expect(await threadTimesOf({ ...vmm, startTicks: "1" }), "another program's").toBeUndefined();
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(await threadTimesOf(vmm)).toBeUndefined();
});

test.runIf(isRoot)("a program that has the pid of one that has ended is left alone", async () => {
  const child = await started();
  expect(await comeLast({ ...child.vmm, startTicks: "1" }, undefined, true)).toBe(true);
  expect(getPriority(child.pid)).toBe(getPriority());
});

test.runIf(isRoot)("nobody minds one that has ended, with its control group or without", async () => {
  const [child, cgroup] = [await started(), await tempFolder()];
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(await comeLast(child.vmm, undefined, true)).toBe(true);
  expect(await comeLast(child.vmm, join(cgroup, "gone"), true)).toBe(true);
});
