import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

const QEMU = "{packages,services}/*/test/**/*.qemu.test.ts";
const LONG = "{packages,services}/*/test/**/*.long.test.ts";

/** Packs the images that these tests share. */
const QEMU_SETUP = "packages/platform/test/helpers/qemu-setup.ts";

/** QEMU tests that need the host to themselves: they run one after the other, when all others have ended. */
const ALONE = [
  "bridge", // connections fail within 1 s of a wake; and the far side's addresses exist once per host
  "busy", // takes every CPU
  "clock", // clocks are compared to 50 ms
  "qemu", // likewise, to 100 ms, and captures are given up at parts of the time that one takes
  "up", // compares two durations
].map((name) => `{packages,services}/*/test/**/${name}.qemu.test.ts`);

/** A guest that is emulated takes a core while it boots; beyond this many the host's disk is what all wait for. */
const MOST_QEMU_FILES = 4;

export default defineConfig({
  test: {
    // Vitest leaves one processor free, which on two of them is half of all.
    maxWorkers: "100%",
    projects: [
      {
        test: {
          name: "unit",
          include: ["{packages,services}/*/test/**/*.test.ts"],
          exclude: [QEMU, LONG, "**/node_modules/**"],
          // Only a bound for what hangs: on a busy host a test that starts a program takes seconds.
          testTimeout: 60_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: "qemu",
          include: [QEMU],
          exclude: [...ALONE, "**/node_modules/**"],
          globalSetup: QEMU_SETUP,
          maxWorkers: Math.min(availableParallelism(), MOST_QEMU_FILES),
          testTimeout: 120_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: "qemu-alone",
          include: ALONE,
          globalSetup: QEMU_SETUP,
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          name: "long",
          include: [LONG],
          // They set whole systems up, and are measured in minutes: each names its own limit.
          fileParallelism: false,
          // Half a million files of such a system are deleted afterwards.
          hookTimeout: 600_000,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
