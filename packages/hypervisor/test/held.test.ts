/** A process that was killed and has not ended. No test makes the kernel hold one: the SIGKILL is not sent. */
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { VmmHeld, type VmmRef } from "../src/contract.ts";
import { isAlive, killProcess, requireEnded, spawnDetached } from "../src/qemu/process.ts";

const MACHINE = "0123456789abcd";
const OTHER = "dcba9876543210";

/** A process of the machine. */
async function sleeper(machineId: string): Promise<VmmRef> {
  const log = join(await tempFolder("held"), "console.log");
  return (await spawnDetached("sleep", ["600"], { machineId, log })).ref;
}

test("a process that does not end is named until it has ended, and no other machine's is", async () => {
  const ref = await sleeper(MACHINE);
  onTestFinished(() => killProcess(ref));
  await requireEnded(MACHINE);
  const killed: number[] = [];
  const kill = (pid: number) => void killed.push(pid);
  const error: unknown = await killProcess(ref, { kill, deadlineMs: 50 }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(VmmHeld);
  expect(error).toMatchObject({ code: "unavailable", details: { machine_id: MACHINE, pid: ref.pid } });
  expect(killed).toEqual([ref.pid]);
  await expect(requireEnded(MACHINE)).rejects.toThrow(`the kernel still holds its process ${ref.pid}`);
  await requireEnded(OTHER);
  process.kill(ref.pid, "SIGKILL");
  await expect.poll(() => isAlive(ref)).toBe(false);
  await killProcess(ref);
  await requireEnded(MACHINE);
});

test("to kill a process again that does not end signals it again, and waits no longer", async () => {
  const ref = await sleeper(MACHINE);
  onTestFinished(() => void process.kill(ref.pid, "SIGKILL"));
  const killed: number[] = [];
  const kill = (pid: number) => void killed.push(pid);
  // One that waits longer than the test, and one that gives up: from then on, none waits.
  const patient = killProcess(ref, { kill });
  const [first, second] = await Promise.allSettled([patient, killProcess(ref, { kill, deadlineMs: 50 })]);
  expect([first, second].map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  for (let again = 0; again < 20; again += 1) await expect(killProcess(ref, { kill })).rejects.toBeInstanceOf(VmmHeld);
  expect(killed).toHaveLength(22);
});

test("a process that is given up while another one of the machine is looked at is not forgotten", async () => {
  const ended = await Promise.all(Array.from({ length: 6 }, () => sleeper(OTHER)));
  const late = await sleeper(OTHER);
  onTestFinished(() => void process.kill(late.pid, "SIGKILL"));
  const giveUp = (ref: VmmRef, kill: () => void = () => {}) =>
    expect(killProcess(ref, { kill, deadlineMs: 0 })).rejects.toBeInstanceOf(VmmHeld);
  for (const ref of ended) await giveUp(ref);
  for (const { pid } of ended) process.kill(pid, "SIGKILL");
  await expect.poll(async () => (await Promise.all(ended.map(isAlive))).includes(true)).toBe(false);
  let looking: Promise<void> | undefined;
  await giveUp(late, () => void (looking = requireEnded(OTHER).catch(() => {})));
  await looking;
  await expect(requireEnded(OTHER)).rejects.toThrow(`the kernel still holds its process ${late.pid}`);
});
