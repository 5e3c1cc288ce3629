/** The one timer: it looks in time, and notices a clock that was set. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { machine } from "../../../platform/test/helpers/decisions.ts";
import { MachineChanges } from "../../src/changes.ts";
import type { MachineController } from "../../src/controller.ts";
import type { ControllerSet } from "../../src/controller-set.ts";
import { DueTimer } from "../../src/schedule/timer.ts";

let now: number;
let looked: string[];
let changes: MachineChanges;
let record: MachineRecord;
let stop: () => void;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  now = Date.parse("2026-05-04T10:00:00Z");
  looked = [];
  changes = new MachineChanges();
  record = machine("suspended");
});
afterEach(() => {
  stop();
  vi.useRealTimers();
});

/** Starts a timer over one machine that writes down when it was looked at, and has its wish fulfilled. */
function start(): void {
  const controller = {
    get record() {
      return record;
    },
    timePassed() {
      looked.push(new Date(now).toISOString());
      record = { ...record, wakeAt: null };
    },
  } as unknown as MachineController;
  const controllers = { changes, all: () => [controller], get: () => controller } as unknown as ControllerSet;
  const drain = { active: false, subscribe: () => () => {} };
  stop = new DueTimer({
    controllers,
    drain,
    clock: () => new Date(now),
    log: { error: () => {}, warn: () => {} },
  }).start();
}

/** Lets both clocks run for that long. */
function pass(ms: number): void {
  for (let left = ms; left > 0; left -= 1000) {
    now += Math.min(left, 1000);
    vi.advanceTimersByTime(Math.min(left, 1000));
  }
}

test("a machine is looked at when its time has come, however far away it is", () => {
  record = { ...record, wakeAt: "2026-06-04T10:00:00.000Z" };
  start();
  expect(vi.getTimerCount()).toBe(1);
  pass(31 * 24 * 60 * 60_000 - 1000);
  expect(looked).toEqual([]);
  pass(1000);
  expect(looked).toEqual(["2026-06-04T10:00:00.000Z"]);
  expect(vi.getTimerCount()).toBe(0);
});

test("a machine that plans a wake later is noticed", () => {
  start();
  expect(vi.getTimerCount()).toBe(0);
  record = { ...record, wakeAt: "2026-05-04T10:00:10.000Z" };
  changes.publish(record);
  pass(10_000);
  expect(looked).toEqual(["2026-05-04T10:00:10.000Z"]);
});

test("a clock that was set ahead is noticed within half a minute", () => {
  record = { ...record, wakeAt: "2026-05-04T20:00:00.000Z" };
  start();
  now = Date.parse("2026-05-05T00:00:00Z");
  pass(30_000);
  expect(looked).toEqual(["2026-05-05T00:00:30.000Z"]);
});

test("nothing is left when it ends", () => {
  record = { ...record, wakeAt: "2026-06-04T10:00:00.000Z" };
  start();
  stop();
  changes.publish(record);
  expect(vi.getTimerCount()).toBe(0);
});
