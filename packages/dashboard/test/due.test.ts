/** When a page that stays open reads again what it shows. */
import { expect, test } from "vitest";
import { isDue } from "../src/data/due.ts";

const SECOND_MS = 1000;
const dueAfter = (seconds: number, hasChanged: boolean) =>
  isDue({ readAt: 5, hasChanged, now: 5 + seconds * SECOND_MS });

test("every minute without a change, and soon after one, but not with each of many", () => {
  expect([59, 60].map((seconds) => dueAfter(seconds, false))).toEqual([false, true]);
  expect([14, 15].map((seconds) => dueAfter(seconds, true))).toEqual([false, true]);
});
