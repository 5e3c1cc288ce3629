/** What a scrape costs that asks about targets for backups. */
import { Registry } from "prom-client";
import { expect, test, vi } from "vitest";
import { backupMetrics } from "../src/backup-metrics.ts";

test("the metrics of one scrape share one reading of the targets, and the next scrape reads them again", async () => {
  const registry = new Registry();
  const lastSuccess = { at: "2026-11-27T03:00:00.000Z", set: "s" };
  const drills = [
    { app: "shop", outcome: "passed" },
    { app: "blog", outcome: "failed" },
    { app: "jobs", outcome: "untried" },
  ];
  const target = { name: "nas", lastSuccess, overdue: true, failures: 2, drills };
  const list = vi.fn<() => Promise<never[]>>(async () => [target as never]);
  backupMetrics(registry, { list });
  const text = await registry.metrics();
  expect(text).toContain('hibernaut_backup_overdue{target="nas"} 1');
  expect(text).toContain('hibernaut_backup_failures_total{target="nas"} 2');
  expect(text).toMatch(/hibernaut_backup_last_success_timestamp_seconds\{target="nas"\} \d{10}/);
  expect(text.match(/^hibernaut_backup_drill_passed.*$/gm), "what was not tried says nothing").toEqual([
    'hibernaut_backup_drill_passed{target="nas",app="shop"} 1',
    'hibernaut_backup_drill_passed{target="nas",app="blog"} 0',
  ]);
  expect(list).toHaveBeenCalledTimes(1);
  await registry.metrics();
  expect(list).toHaveBeenCalledTimes(2);
});
