/** Guests that QEMU halts because the disk is full: what is told of them. Time is counted, not waited for. */
import { expect, test, vi } from "vitest";
import type { Qmp } from "../src/qemu/qmp.ts";
import { endStalls } from "../src/qemu/stall.ts";

const time = vi.hoisted(() => ({ waitedMs: 0 }));
vi.mock("node:timers/promises", () => ({
  setTimeout: (ms: number) => {
    time.waitedMs += ms;
    return Promise.resolve();
  },
}));

/** A QEMU whose guest is halted as often as `moreHalts` says after it was told to continue. */
function fullDisk() {
  const listeners: ((event: { event: string; data: object }) => void)[] = [];
  const told: (string | undefined)[] = [];
  const disk = { halted: false, moreHalts: 0, told };
  const qmp = {
    subscribe: (listener: (event: { event: string; data: object }) => void) => listeners.push(listener),
    execute: async (command: string) => {
      if (command === "cont") disk.halted = false;
      const status = disk.halted ? "io-error" : "running";
      if (command === "query-status" && !disk.halted && disk.moreHalts > 0) {
        disk.moreHalts -= 1;
        disk.halted = true;
      }
      return { status };
    },
  };
  endStalls(qmp as unknown as Qmp, new AbortController().signal, (reason) => told.push(reason));
  const halt = async () => {
    disk.halted = true;
    const before = told.length;
    time.waitedMs = 0;
    for (const listener of listeners) listener({ event: "BLOCK_IO_ERROR", data: { action: "stop", reason: "full" } });
    await vi.waitFor(() => expect(told.length).toBe(before + 2));
    return time.waitedMs;
  };
  return { disk, halt, told };
}

test("a guest that was halted is told to run at once, and after more halts when it has run for a while", async () => {
  const { halt, told } = fullDisk();
  const first = await halt();
  expect(first).toBeLessThan(1_000);
  expect(told).toEqual([expect.stringContaining("(full)"), undefined]);
  expect(await halt()).toBe(first + 1_000);
  for (let round = 0; round < 20; round += 1) await halt();
  expect(await halt()).toBe(first + 10_000);
});

test("a guest that is halted again before that continues each time, and nothing is told in between", async () => {
  const { disk, halt, told } = fullDisk();
  await halt();
  disk.moreHalts = 5;
  await halt();
  expect(disk).toMatchObject({ halted: false, moreHalts: 0 });
  expect(told).toHaveLength(4);
});
