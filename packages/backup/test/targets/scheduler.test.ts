/** Backups that nobody begins by hand. */
import { faultCounts } from "@hibernaut/lib/background";
import { expect, onTestFinished, test, vi } from "vitest";
import { startScheduler } from "../../src/targets/scheduler.ts";
import { Home } from "./helpers.ts";

const DAYS_MS = 24 * 60 * 60_000;

test("of two backups that are due at once, one waits for the other, and each is tried once", async () => {
  const home = await Home.open();
  onTestFinished(() => home.close());
  for (const name of ["disk", "second"]) await home.add({ name, schedule: "0 3 * * *" });
  await home.stop();
  // Without restic, each has ended in a moment.
  await home.start({ program: "/nowhere/restic", now: () => new Date(Date.now() + 3 * DAYS_MS) });
  const before = faultCounts().background;
  const warnings: string[] = [];
  const log = { info: () => {}, warn: (_: object, text: string) => void warnings.push(text) };
  const end = startScheduler({ targets: home.targets, drill: async () => {}, lookMs: 10, log });
  onTestFinished(end);
  const last = async () => (await home.targets.list()).map((target) => target.last?.state);
  await vi.waitFor(async () => expect(await last()).toEqual(["failed", "failed"]), { timeout: 20_000 });
  expect(home.events().filter((type) => type === "backup.failed")).toHaveLength(2);
  expect(warnings).toEqual([]);
  expect(faultCounts().background).toBe(before);
});
