/** Targets of backups as the API shows them, for tests of what the dashboard makes of them. */
import type { BackupDrill, BackupSet, BackupTarget } from "@hibernaut/client";

const TIME = "2026-01-31T03:00:00.000Z";

/** Returns a target whose latest backup is good, except for what is given. */
export function target(parts: Partial<BackupTarget> = {}): BackupTarget {
  const set = "20260131T030000Z-0a1b2c";
  return {
    ...{ name: "nas", url: "/mnt/usb/hibernaut", kind: "directory", added_at: TIME, schedule: null, keep: null },
    ...{ next_at: null, overdue: false, running: null, last: last({ set }), last_success: { at: TIME, set } },
    ...{
      last_check: null,
      prune_error: null,
      drill_schedule: null,
      next_drill_at: null,
      drills: [],
      last_drill: null,
      last_restore: null,
    },
    ...parts,
  };
}

/** Returns how a good backup ended, except for what is given. */
export function last(parts: Partial<NonNullable<BackupTarget["last"]>>): NonNullable<BackupTarget["last"]> {
  const times = { started_at: TIME, ended_at: TIME };
  return {
    ...times,
    state: "complete",
    set: null,
    bytes: 2048,
    added: 1024,
    failed_commands: [],
    changed: [],
    error: null,
    ...parts,
  };
}

/** Returns a drill that passed, except for what is given. */
export function drill(parts: Partial<BackupDrill>): BackupDrill {
  const times = { started_at: TIME, ended_at: TIME };
  const outcome = parts.error ? "failed" : "passed";
  const found: Pick<BackupDrill, "outcome" | "machines" | "counts" | "error"> = {
    ...{ outcome, machines: [], counts: [], error: null },
  };
  return { ...times, app_name: "shop", set: "s", set_at: TIME, ...found, ...parts };
}

/** Returns a set that counts, except for what is given. */
export function backupSet(parts: Partial<BackupSet>): BackupSet {
  return {
    ...{ set: `20260131T030000Z-${parts.state ?? ""}`, at: TIME, state: "complete", reason: null, own: true },
    ...{ host: "shop-1", version: "0.1.0", apps: ["shop"], machines: 1, bytes: 2048, added: 1024, verified: null },
    ...parts,
  };
}
