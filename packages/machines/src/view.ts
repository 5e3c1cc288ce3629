/** A machine as the API and the proxy see it: its record, and what follows from it. */
import type { CheckResult } from "@hibernaut/domain/check";
import { type Health, healthOf } from "@hibernaut/domain/health";
import type { Eligibility, MachineRecord } from "@hibernaut/domain/machine";
import type { Listener } from "@hibernaut/guest";
import type { MachineDependencies } from "./dependencies.ts";
import { eligibilityOf } from "./eligibility.ts";
import { nextScheduled } from "./schedule/due.ts";
import type { WarmKeeper } from "./warm/keeper.ts";

/** A machine with what follows from its record. */
export interface MachineView {
  record: MachineRecord;
  suspend: Eligibility;
  health: Health;
  /** The latest results of the machine's checks; empty unless it is running. */
  checks: CheckResult[];
  /** The bundle that the machine boots from, and whether there is a newer one. */
  guestBundle: { version: string; current: boolean };
  /** The image reference as configured, and the digest it resolved to. */
  image: { ref: string; digest: string };
  /** Until when the paused VMM of the suspended machine is kept, RFC 3339. Null when there is none. */
  warmUntil: string | null;
  /** When the schedule starts the machine next, RFC 3339. Null without a schedule. */
  nextRun: string | null;
  /** Where the app listens while requests do not reach it. Absent while they do, or that is unknown. */
  listening?: readonly Listener[];
  /** The host of the cluster that owns the machine. Absent on a host alone. */
  host?: string;
}

/** What a view is made from. */
interface ViewDependencies
  extends Pick<MachineDependencies, "settings" | "bundles" | "checkResults" | "clock" | "hostName"> {
  warm: Pick<WarmKeeper, "until">;
}

/** Returns the machine as others see it now. */
export function viewOf(record: MachineRecord, deps: ViewDependencies): MachineView {
  const checks = deps.checkResults?.(record.id) ?? [];
  const warmUntil = deps.warm.until(record.id);
  return {
    record,
    suspend: eligibilityOf(record, deps),
    health: healthOf(record, checks),
    checks,
    guestBundle: { version: record.bundleVersion, current: record.bundleVersion === deps.bundles.current.version },
    image: { ref: record.config.image, digest: record.imageDigest },
    warmUntil: warmUntil === undefined ? null : new Date(warmUntil).toISOString(),
    nextRun: nextScheduled(record, deps.clock?.() ?? new Date())?.toISOString() ?? null,
    ...(deps.hostName !== undefined && { host: deps.hostName }),
  };
}
