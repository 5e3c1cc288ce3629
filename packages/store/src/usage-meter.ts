/**
 * Writes usage. Its methods run inside the transaction of the change that they follow, so that a change and the interval
 * it ends are stored together or not at all.
 *
 * Time never runs backwards here: an interval ends at the later of the clock and its own beginning. After the clock was
 * set back, nothing accrues until it has caught up.
 */
import { guestSize } from "@hibernaut/domain/config";
import { isResting, type LastBoot, type MachineEvent, type MachineRecord } from "@hibernaut/domain/machine";
import { ALL_TIME, dayOf, daysOf, monthOf } from "@hibernaut/domain/periods";
import type { TemplateRecord } from "@hibernaut/domain/template";
import {
  AMOUNTS,
  type Amounts,
  accrued,
  addAmounts,
  meterAfter,
  noAmounts,
  type Rates,
  wholeMb,
} from "@hibernaut/domain/usage";
import type { VolumeRecord } from "@hibernaut/domain/volume";
import type { Database, Statement } from "better-sqlite3";
import type { OpenUsage } from "./contract.ts";

const MB_PER_GB = 1024;

/** A machine or volume that is metered now, as it is stored. */
interface OpenRow extends OpenUsage {
  /** The machine's state; empty for a volume. */
  state: string;
  /** 1 while a start is in progress that a request at the proxy asked for. */
  woken: number;
}

/** How a machine that a request woke came up. */
type WakeKind = "resume" | "cold";

/** A start from memory is metered as what it saves: a resume. */
function wakeOf(lastBoot: LastBoot | null): WakeKind | null {
  return lastBoot === null ? null : lastBoot.kind === "cold" ? "cold" : "resume";
}

/** Follows every change of a machine or volume. */
export interface UsageMeter {
  machine(machine: MachineRecord, event?: MachineEvent): void;
  volume(volume: VolumeRecord): void;
  volumeRemoved(id: string): void;
  /** A template takes the disk as a snapshot of no machine does. */
  template(template: Pick<TemplateRecord, "id" | "app" | "sizeBytes">): void;
  templateRemoved(id: string): void;
  /** The writable layer of a machine now takes up this many MB. */
  layer(machineId: string, layerMb: number): void;
  /** Counts amounts that have no duration, now. Nothing for a machine that was never metered. */
  count(machineId: string, amounts: Readonly<Partial<Amounts>>): void;
}

export const OPEN_COLUMNS =
  "subject, app, machine, meter, since, cpus, memory_mb AS memoryMb, layer_mb AS layerMb, volume_mb AS volumeMb, snapshot_mb AS snapshotMb";

/** Returns the meter of an open, migrated database. `now` is the wall clock, in milliseconds since 1970. */
export function usageMeter(db: Database, now: () => number): UsageMeter {
  const get = db.prepare<[string], OpenRow>(`SELECT ${OPEN_COLUMNS}, state, woken FROM usage_open WHERE subject = ?`);
  const put = db.prepare<OpenRow>(`
    INSERT OR REPLACE INTO usage_open
      (subject, app, machine, meter, since, cpus, memory_mb, layer_mb, volume_mb, snapshot_mb, state, woken)
    VALUES
      (@subject, @app, @machine, @meter, @since, @cpus, @memoryMb, @layerMb, @volumeMb, @snapshotMb, @state, @woken)
  `);
  const drop = db.prepare<[string]>("DELETE FROM usage_open WHERE subject = ?");
  const volumesOf = db.prepare<[string], OpenRow>(
    `SELECT ${OPEN_COLUMNS}, state, woken FROM usage_open WHERE machine = ? AND meter = 'volume'`,
  );
  const append = db.prepare<OpenRow & { until: number; wake: WakeKind | null }>(`
    INSERT INTO usage_intervals
      (subject, app, machine, meter, since, until, cpus, memory_mb, layer_mb, volume_mb, snapshot_mb, wake)
    VALUES
      (@subject, @app, @machine, @meter, @since, @until, @cpus, @memoryMb, @layerMb, @volumeMb, @snapshotMb, @wake)
  `);
  const name = db.prepare<{ name: string; app: string; title: string | null }>(
    "INSERT INTO usage_names (name, app, title) VALUES (@name, @app, @title) ON CONFLICT DO UPDATE SET title = excluded.title",
  );
  const appOf = db.prepare<[string], { app: string }>("SELECT app FROM usage_names WHERE name = ?");
  const add = adder(db);

  /** Ends the interval of a row: appends it, and adds it to the sums of its days. */
  function end(row: OpenRow, until: number, wake: WakeKind | null): void {
    if (until === row.since && wake === null) return;
    append.run({ ...row, until, wake });
    const sums = new Map<number, Amounts>();
    const sumOf = (period: number): Amounts => {
      const sum = sums.get(period) ?? noAmounts();
      sums.set(period, sum);
      return sum;
    };
    for (const piece of daysOf(row.since, until)) {
      const amounts = accrued(row, piece.until - piece.since);
      for (const period of periodsAround(piece.since)) addAmounts(sumOf(period), amounts);
    }
    const counts = { resumes: wake === "resume" ? 1 : 0, cold_starts: wake === "cold" ? 1 : 0 };
    if (wake !== null) for (const period of periodsAround(until)) addAmounts(sumOf(period), counts);
    for (const [period, sum] of sums) add(period, row, sum);
  }

  /** Ends what accrued until now, and begins again as `next`, or not at all. Does nothing when nothing changes. */
  function change(before: OpenRow | undefined, next: OpenRow | null, wake: WakeKind | null = null): void {
    if (before !== undefined && next !== null && wake === null && sameRates(before, next)) {
      if (before.state !== next.state || before.woken !== next.woken) put.run({ ...next, since: before.since });
      return;
    }
    const at = Math.max(now(), before?.since ?? 0);
    if (before !== undefined) end(before, at, wake);
    if (next !== null) put.run({ ...next, since: at });
    else if (before !== undefined) drop.run(before.subject);
  }

  function removed(subject: string): void {
    change(get.get(subject), null);
  }

  /** Gives a machine the volumes that its configuration names, and takes all others from it. */
  function attach({ id, app, state, config }: MachineRecord): void {
    const mounts = state === "destroyed" ? [] : (config.mounts ?? []).map(({ volume }) => volume ?? "");
    const has = volumesOf.all(id);
    for (const volume of has) if (!mounts.includes(volume.subject)) change(volume, { ...volume, machine: ofApp(app) });
    for (const subject of mounts) {
      const volume = has.some((each) => each.subject === subject) ? undefined : get.get(subject);
      if (volume !== undefined) change(volume, { ...volume, machine: id });
    }
  }

  return {
    machine(machine, event) {
      const before = get.get(machine.id);
      const { id, app, state } = machine;
      const named = before === undefined || event?.type === "taken";
      if (named && state !== "destroyed") name.run({ name: id, app, title: machine.name });
      const meter = meterAfter(state, before?.meter as Exclude<Rates["meter"], "volume"> | undefined);
      const woken = isWoken(before, machine, event);
      const wake = before?.state === "starting" && state === "running" && woken ? wakeOf(machine.lastBoot) : null;
      const { cpus, memoryMb } = guestSize(machine.config);
      const next: OpenRow | null = meter && {
        ...{ subject: id, app, machine: id, meter, since: 0, cpus, memoryMb },
        layerMb: before?.layerMb ?? 0,
        volumeMb: 0,
        snapshotMb: wholeMb(machine.snapshot?.size_bytes ?? 0),
        state,
        woken: woken && !isResting(state) ? 1 : 0,
      };
      change(before, next, wake);
      attach(machine);
    },
    volume({ id, app, sizeGb }) {
      const before = get.get(id);
      if (before === undefined) name.run({ name: ofApp(app), app, title: null });
      const size = { volumeMb: sizeGb * MB_PER_GB };
      const unused = { cpus: 0, memoryMb: 0, layerMb: 0, snapshotMb: 0, state: "", woken: 0, since: 0 };
      change(before, { subject: id, app, machine: ofApp(app), meter: "volume", ...unused, ...before, ...size });
    },
    volumeRemoved: removed,
    template({ id, app, sizeBytes }) {
      name.run({ name: ofApp(app), app, title: null });
      const size = { volumeMb: 0, snapshotMb: wholeMb(sizeBytes) };
      const unused = { cpus: 0, memoryMb: 0, layerMb: 0, state: "", woken: 0, since: 0 };
      change(undefined, { subject: id, app, machine: ofApp(app), meter: "volume", ...unused, ...size });
    },
    templateRemoved: removed,
    layer(machineId, layerMb) {
      const before = get.get(machineId);
      if (before !== undefined) change(before, { ...before, layerMb });
    },
    count(machineId, amounts) {
      const app = appOf.get(machineId)?.app;
      if (app === undefined) return;
      for (const period of periodsAround(now())) add(period, { app, machine: machineId }, amounts);
    },
  };
}

/** The name under which the volumes of an app are counted that no machine has, and its templates. No machine's id has a colon. */
function ofApp(app: string): string {
  return `volumes:${app}`;
}

function isWoken(before: OpenRow | undefined, { state }: MachineRecord, event: MachineEvent | undefined): boolean {
  if (event?.type === "start") return event.details.by === "proxy";
  return before?.woken === 1 && (!isResting(state) || state === "running");
}

function sameRates(one: OpenRow, other: OpenRow): boolean {
  const keys = ["app", "machine", "meter", "cpus", "memoryMb", "layerMb", "volumeMb", "snapshotMb"] as const;
  return keys.every((key) => one[key] === other[key]);
}

function periodsAround(at: number): number[] {
  return [dayOf(at), monthOf(at), ALL_TIME];
}

/** Returns a function that adds amounts to a period: of the machine, of its app, and of everything. */
function adder(db: Database) {
  const columns = AMOUNTS.join(", ");
  const values = AMOUNTS.map((column) => `@${column}`).join(", ");
  const sums = AMOUNTS.map((column) => `${column} = ${column} + excluded.${column}`).join(", ");
  const statement: Statement<[Amounts & { grain: string; period: number; name: string }]> = db.prepare(`
    INSERT INTO usage_sums (grain, period, name, ${columns}) VALUES (@grain, @period, @name, ${values})
    ON CONFLICT (grain, name, period) DO UPDATE SET ${sums}
  `);
  const none = noAmounts();
  return (period: number, { app, machine }: { app: string; machine: string }, amounts: Readonly<Partial<Amounts>>) => {
    const row = { ...none, ...amounts, period };
    statement.run({ ...row, grain: "app", name: app });
    // All time is asked of apps only.
    if (period === ALL_TIME) return;
    statement.run({ ...row, grain: "machine", name: machine });
    statement.run({ ...row, grain: "all", name: "" });
  };
}
