/**
 * The platform under KVM, where the host has none: in an emulated machine whose processor offers AMD's SVM, on which
 * kvm-amd runs guests with nested paging. The same stories are told as on a host with KVM, only slowly. A cold start inside
 * takes a minute.
 *
 * HIBERNAUT_NESTED_CYCLES is how often the machine sleeps and wakes.
 */
import { join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { STORIES } from "../../../../scripts/lib/kvm-tests.mjs";
import { packSmallApp, SMALL_APP } from "../helpers/small-app/image.ts";
import { openTempFolder } from "../helpers/temp.ts";
import { makeDisk, Outer } from "../outer/outer.ts";
import { buildOuterFiles, type OuterFiles } from "../outer/outer-disk.ts";
import { type Look, Sleeper } from "./sleeper.ts";

declare module "vitest" {
  interface TaskMeta {
    /** What this one test stands for: see `scripts/lib/test-reporter.mjs`. */
    inside?: { passed: number; failed: number };
  }
}

const CYCLES = Number(process.env["HIBERNAUT_NESTED_CYCLES"] ?? 5);
/** Long enough that a clock that stops in the meantime is seen. */
const SLEEP_MS = 10_000;
/** The promise. */
const CLOCK_MS = 500;
const LIMIT_MS = 60 * 60_000;
const ROOT = join(import.meta.dirname, "../../../..");
const ORDERS = `oci:${join(ROOT, ".build/orders")}:latest`;
const here = (name: string) => relative(ROOT, join(import.meta.dirname, name));
/** What runs inside, by name: an empty list means every test of the file. */
const PROGRAMS = {
  conformance: { [here("conformance-inside.ts")]: [] },
  stories: STORIES,
  tour: { [here("tour-inside.ts")]: [] },
};

let folder: Awaited<ReturnType<typeof openTempFolder>>;
let files: OuterFiles;
let outer: Outer | undefined;
let before: Look;
const disk = () => `${folder.path}/disk`;

async function boot(): Promise<Sleeper> {
  const booted = await step("boot, and the proof of KVM", () => Outer.boot(files, disk(), folder.path));
  outer = booted;
  const { accelerator, accelerator_reason: reason } = await booted.client.getHealth();
  process.stderr.write(`nested KVM: ${reason}\n`);
  expect(accelerator).toBe("kvm");
  return new Sleeper(booted);
}

/** Says what was done and how long it took: this test is slow, and nobody should wonder whether it still runs. */
async function step<T>(what: string, work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  try {
    return await work();
  } catch (error) {
    process.stderr.write(`nested KVM: ${what} failed; the end of the console:\n${await outer?.lastLines()}\n`);
    throw error;
  } finally {
    process.stderr.write(`nested KVM: ${what}: ${((performance.now() - began) / 1000).toFixed(1)} s\n`);
  }
}

/** Puts the machine to sleep for a while. */
async function asleep(sleeper: Sleeper): Promise<void> {
  await step("suspend", () => sleeper.suspend());
  await sleep(SLEEP_MS); // the sleep is what is tested
}

/** Wakes it by a request, and looks whether it is the same process, whose clocks are right. */
async function awake(sleeper: Sleeper): Promise<void> {
  const woke = await step("wake, to the first answer", () => sleeper.wake());
  expect({ ...woke, ...(await sleeper.lastBoot()) }, await outer?.lastLines()).toMatchObject({
    kind: "resume",
    reason: "snapshot",
  });
  const after = await step("look at the clock", () => sleeper.look());
  process.stderr.write(`nested KVM: ${JSON.stringify({ woke, ...after })}\n`);
  expect(after.nonce, "the same process").toBe(before.nonce);
  expect(after.count, "which saw every request").toBe(before.count + 2);
  expect(after.uptimeMs, "whose monotonic clock never went back").toBeGreaterThan(before.uptimeMs);
  expect(after.offMs, "and whose wall clock is right").toBeLessThan(CLOCK_MS);
  before = after;
}

beforeAll(async () => {
  await packSmallApp();
  folder = await openTempFolder("nested");
  files = await step("making the disk", () =>
    buildOuterFiles(folder.path, { programs: PROGRAMS, images: [SMALL_APP, ORDERS] }),
  );
  await makeDisk(disk());
});
afterAll(async () => {
  await outer?.cut();
  await folder[Symbol.asyncDispose]();
});

test("a machine boots, sleeps and wakes under KVM, and a snapshot outlives a reboot of its host", {
  timeout: LIMIT_MS,
}, async () => {
  const first = await boot();
  await step("cold start", () => first.make());
  before = await first.look();
  for (let cycle = 1; cycle <= CYCLES; cycle += 1) {
    await asleep(first);
    await awake(first);
  }
  await asleep(first);
  await outer?.cut();
  const second = await boot();
  expect(await second.find()).toBe("suspended");
  await awake(second);
});

for (const [name, program] of [
  ["QEMU under KVM passes the suite of hypervisors", "conformance"],
  ["machines under KVM do what they promise, with warm sleep", "stories"],
  ["an app with a database starts, sleeps and wakes", "tour"],
] as const)
  test(`${program}: ${name}`, { timeout: LIMIT_MS }, async ({ task }) => {
    await outer?.cut();
    await makeDisk(disk());
    const onLine = (line: string) => {
      process.stderr.write(`nested KVM: ${line}\n`);
      const [, passed, failed] = /^(\d+) passed, (\d+) failed$/.exec(line) ?? [];
      if (passed !== undefined) task.meta.inside = { passed: Number(passed), failed: Number(failed) };
    };
    const signal = AbortSignal.timeout(LIMIT_MS);
    const run = () => Outer.run(files, disk(), folder.path, { program, onLine, signal });
    expect(await step(program, run)).toBe(0);
  });
