/** A process that was killed and has not ended. No test makes the kernel hold one: the SIGKILL is not sent. */
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { VmmHeld } from "../../src/hypervisor/contract.ts";
import { isAlive, killProcess, requireEnded, spawnDetached } from "../../src/hypervisor/qemu/process.ts";
import { tempFolder } from "../helpers/temp.ts";

const MACHINE = "0123456789abcd";

test("a process that does not end is named until it has ended, and no other machine's is", async () => {
  const log = join(await tempFolder("held"), "console.log");
  const { ref } = await spawnDetached("sleep", ["600"], { machineId: MACHINE, log });
  onTestFinished(() => killProcess(ref));
  await requireEnded(MACHINE);
  const killed: number[] = [];
  const kill = (pid: number) => void killed.push(pid);
  const error: unknown = await killProcess(ref, { kill, deadlineMs: 50 }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(VmmHeld);
  expect(error).toMatchObject({ code: "unavailable", details: { machine_id: MACHINE, pid: ref.pid } });
  expect(killed).toEqual([ref.pid]);
  await expect(requireEnded(MACHINE)).rejects.toThrow(`the kernel still holds its process ${ref.pid}`);
  await requireEnded("dcba9876543210");
  await killProcess(ref);
  expect(await isAlive(ref)).toBe(false);
  await requireEnded(MACHINE);
});
