import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { listTestFiles, needsOwnProcess } from "./scripts/lib/test-files.mjs";
import SpreadingSequencer from "./scripts/lib/test-sequencer.mjs";

const QEMU = "{packages,services}/*/test/**/*.qemu.test.ts";
const LONG = "{packages,services}/*/test/**/*.long.test.ts";

/** Builds the program that tests start, unless it is newer than its sources. */
const BUILD = "scripts/lib/test-build.mjs";
/** Keeps tests away from the home of whoever runs them. */
const GUARD = "scripts/lib/test-guard.mjs";
/** Lets unit tests share a process. */
const PUT_BACK = "scripts/lib/test-put-back.mjs";
/** Packs the images that these tests share. */
const QEMU_SETUP = "packages/platform/test/helpers/qemu-setup.ts";

/** QEMU tests that need the host to themselves. They run one at a time, after all others. */
const ALONE = [
  "busy", // takes every CPU
  "clock", // compares clocks to 50 ms
  "time-of-day", // compares clocks to 100 ms
].map((name) => `{packages,services}/*/test/**/${name}.qemu.test.ts`);

/**
 * Unit tests and tests on QEMU run at the same time. An emulated guest takes a core while it boots, a unit test while it
 * runs, and both wait in between: for a program, an idle time, a time limit. One file more than cores fills the gaps;
 * more than that wait for each other.
 */
const FILES = availableParallelism() + 1;

const UNIT = listTestFiles(import.meta.dirname).filter((file) => !/\.(qemu|long)\.test\.ts$/.test(file));
const APART = UNIT.filter((file) => needsOwnProcess(import.meta.dirname, file));

const unit = {
  setupFiles: [GUARD, PUT_BACK],
  globalSetup: BUILD,
  maxWorkers: FILES,
  // Only a bound for what hangs: on a busy host a test that starts a program takes seconds.
  testTimeout: 60_000,
  hookTimeout: 60_000,
  sequence: { groupOrder: 0 },
};

export default defineConfig({
  test: {
    sequence: { sequencer: SpreadingSequencer },
    tags: [{ name: "again", description: "left to npm run test:all: see CONTRIBUTING.md" }],
    projects: [
      { test: { ...unit, name: "unit", include: UNIT.filter((file) => !APART.includes(file)), isolate: false } },
      { test: { ...unit, name: "unit-apart", include: APART } },
      {
        test: {
          name: "qemu",
          include: [QEMU],
          exclude: [...ALONE, "**/node_modules/**"],
          setupFiles: GUARD,
          globalSetup: [BUILD, QEMU_SETUP],
          maxWorkers: FILES,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: "qemu-alone",
          include: ALONE,
          setupFiles: GUARD,
          globalSetup: [BUILD, QEMU_SETUP],
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: "long",
          include: [LONG],
          setupFiles: GUARD,
          globalSetup: BUILD,
          // They set whole systems up, and are measured in minutes: each names its own limit.
          fileParallelism: false,
          // Half a million files of such a system are deleted afterwards.
          hookTimeout: 600_000,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
