/** How busy the CPUs are, as the kernel tells it. */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { HostCpu } from "../../src/cpu/host-cpu.ts";

test("what counts is the time since the last look, without waits for a disk, and guests' time once", async () => {
  const proc = await tempFolder();
  const tell = (times: string) => writeFile(join(proc, "stat"), `cpu  ${times}\ncpu0 1 1 1 1\n`);
  const cpu = new HostCpu(proc);
  await tell("100 0 100 700 100 0 0 0 90 0");
  expect(cpu.busy()).toBeCloseTo(0.2);
  await tell("180 0 110 710 100 0 0 0 170 0");
  expect(cpu.busy()).toBeCloseTo(0.9);
  expect(cpu.busy(), "no time has passed").toBe(0);
  await rm(join(proc, "stat"));
  expect(cpu.busy(), "it cannot be known").toBe(0);
});
