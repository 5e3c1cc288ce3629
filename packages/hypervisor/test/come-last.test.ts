/** A process that lets others come before it, as the kernel tells it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { getPriority } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import type { VmmRef } from "../src/contract.ts";
import { comeLast } from "../src/qemu/come-last.ts";
import { startTicks } from "../src/qemu/process.ts";

const isRoot = process.getuid?.() === 0;

/** A program in a session of its own, as a QEMU is. */
async function started(): Promise<ChildProcess & { pid: number; vmm: VmmRef }> {
  const child = spawn("sleep", ["600"], { detached: true, stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child, "spawn");
  const { pid = 0 } = child;
  return Object.assign(child, { pid, vmm: { machineId: "sleeper", pid, startTicks: (await startTicks(pid)) ?? "" } });
}

test.runIf(isRoot)("its session and its threads come later, and as before", async () => {
  const child = await started();
  const session = `/proc/${child.pid}/autogroup`;
  const nices = async () => [
    getPriority(child.pid),
    existsSync(session) ? Number((await readFile(session, "utf8")).split(" ").at(-1)) : getPriority(child.pid),
  ];
  expect(await comeLast(child.vmm, undefined, true)).toBe(true);
  expect(await nices()).toEqual([10, 10]);
  expect(await comeLast(child.vmm, undefined, false)).toBe(true);
  expect(await nices()).toEqual([5, 5]);
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
