import { defineConfig } from "vitest/config";

const QEMU = "{packages,services}/*/test/**/*.qemu.test.ts";
const LONG = "{packages,services}/*/test/**/*.long.test.ts";

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
        },
      },
      {
        test: {
          name: "qemu",
          include: [QEMU],
          // Real machines: software emulation needs a core to itself, or what is measured is the queue for it.
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
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
        },
      },
    ],
  },
});
