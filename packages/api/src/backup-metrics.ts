/** What the metrics say about backups to targets. Administrators name the targets, and there are at most 16. */
import type { BackupTargetService, TargetView } from "@hibernaut/backup";
import { Counter, Gauge, type Registry } from "prom-client";

/** Registers them. */
export function backupMetrics(registry: Registry, targets: Pick<BackupTargetService, "list">): void {
  const common = { labelNames: ["target"] as const, registers: [registry] };
  /** All metrics of a scrape are collected at once, and share one reading of the file. */
  let reading: Promise<TargetView[]> | undefined;
  const each = async (record: (target: TargetView) => void) => {
    reading ??= targets
      .list()
      // A file of targets that cannot be read is told elsewhere, and must not take all other metrics with it.
      .catch((): TargetView[] => [])
      .finally(() => {
        reading = undefined;
      });
    for (const target of await reading) record(target);
  };
  new Gauge({
    ...common,
    name: "hibernaut_backup_last_success_timestamp_seconds",
    help: "When the latest backup at a target that counts was begun, in seconds since 1970; 0 before the first.",
    async collect() {
      this.reset();
      await each(({ name, lastSuccess }) =>
        this.set({ target: name }, lastSuccess === null ? 0 : Date.parse(lastSuccess.at) / 1000),
      );
    },
  });
  new Gauge({
    ...common,
    name: "hibernaut_backup_overdue",
    help: "1 if the latest good backup at a target is older than its schedule promises, otherwise 0.",
    async collect() {
      this.reset();
      await each(({ name, overdue }) => this.set({ target: name }, overdue ? 1 : 0));
    },
  });
  new Counter({
    ...common,
    name: "hibernaut_backup_failures_total",
    help: "Backups to a target that failed since the platform started.",
    async collect() {
      this.reset();
      await each(({ name, failures }) => this.inc({ target: name }, failures));
    },
  });
  new Gauge({
    ...common,
    name: "hibernaut_backup_drill_passed",
    help: "1 if the latest drill of an app from a target passed, otherwise 0.",
    labelNames: ["target", "app"] as const,
    async collect() {
      this.reset();
      await each(({ name, drills }) => {
        for (const { app, outcome } of drills)
          if (outcome !== "untried") this.set({ target: name, app }, outcome === "passed" ? 1 : 0);
      });
    },
  });
}
