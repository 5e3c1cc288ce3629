import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { listTestFiles, needsOwnProcess } from "./scripts/lib/test-files.mjs";
import SpreadingSequencer from "./scripts/lib/test-sequencer.mjs";

const LONG = "{packages,services}/*/test/**/*.long.test.ts";

/** Builds the program that tests start, unless it is newer than its sources. */
const BUILD = "scripts/lib/test-build.mjs";
/** Keeps tests away from the home of whoever runs them. */
const GUARD = "scripts/lib/test-guard.mjs";
/** Lets tests share a process. */
const PUT_BACK = "scripts/lib/test-put-back.mjs";
/** Packs the images that these tests share. */
const QEMU_SETUP = "packages/platform/test/helpers/qemu-setup.ts";

/** QEMU tests that need the host to themselves. They run one at a time, after all others. */
const ALONE = [
  "busy", // takes every CPU
  "clock", // compares clocks to 50 ms
  "time-of-day", // compares clocks to 100 ms
].map((name) => `/${name}.qemu.test.ts`);

/**
 * Unit tests and tests on QEMU run at the same time. An emulated guest takes a core while it boots, a unit test while it
 * runs, and both wait in between: for a program, an idle time, a time limit. One file more than cores fills the gaps;
 * more than that wait for each other.
 */
const FILES = availableParallelism() + 1;

const ROOT = import.meta.dirname;
const ALL = listTestFiles(ROOT);
const UNIT = ALL.filter((file) => !/\.(qemu|long)\.test\.ts$/.test(file));
const QEMU = ALL.filter((file) => file.endsWith(".qemu.test.ts") && !ALONE.some((name) => file.endsWith(name)));
const APART = [...UNIT, ...QEMU].filter((file) => needsOwnProcess(ROOT, file));

/** Files that share a process: it has loaded most modules already. To load them takes a CPU most of a second. */
const together = (files: string[]) => ({ include: files.filter((file) => !APART.includes(file)), isolate: false });
const apart = (files: string[]) => ({ include: files.filter((file) => APART.includes(file)) });

const unit = {
  setupFiles: [GUARD, PUT_BACK],
  globalSetup: BUILD,
  maxWorkers: FILES,
  // Only a bound for what hangs: on a busy host a test that starts a program takes seconds, and some start twenty.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  sequence: { groupOrder: 0 },
};

const qemu = { ...unit, globalSetup: [BUILD, QEMU_SETUP] };

export default defineConfig({
  test: {
    sequence: { sequencer: SpreadingSequencer },
    tags: [{ name: "again", description: "left to npm run test:all: see CONTRIBUTING.md" }],
    projects: [
      { test: { ...unit, ...together(UNIT), name: "unit" } },
      { test: { ...unit, ...apart(UNIT), name: "unit-apart" } },
      { test: { ...qemu, ...together(QEMU), name: "qemu" } },
      { test: { ...qemu, ...apart(QEMU), name: "qemu-apart" } },
      {
        test: {
          ...qemu,
          name: "qemu-alone",
          include: ALONE.map((name) => `{packages,services}/*/test/**${name}`),
          fileParallelism: false,
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
