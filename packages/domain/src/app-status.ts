/** How an app is, in one word for everybody. Pure. */
import type { MachineRecord } from "./machine.ts";
import { isWokenByRequests, isWorker } from "./worker.ts";

/**
 * `up`: a machine runs and works. `failing`: none does, and at least one should. `asleep`: the next request wakes a
 * machine. `stopped`: nothing runs, nothing is wrong, and no request changes that.
 */
export type AppStatusWord = "up" | "asleep" | "failing" | "stopped";

/** How an app is, and since when, RFC 3339; null if that is not known. */
export interface AppStatus {
  word: AppStatusWord;
  since: string | null;
}

/** What is known about a machine. Times that are not known are left out. */
export interface JudgedMachine {
  record: Pick<MachineRecord, "state" | "stateSince" | "releaseCommand" | "cordoned"> & {
    config: Pick<MachineRecord["config"], "services" | "worker_idle_timeout">;
    lastBoot: { at: string } | null;
    snapshot: { created_at: string } | null;
    updatedAt?: string;
    crash?: { at?: string } | null;
  };
  health: { status: "healthy" | "unhealthy" | "unknown" };
  /** Its host is away, so that no request reaches it. Default: false. */
  isAway?: boolean;
}

/**
 * Judges an app by its machines. Those of release commands, and those kept from requests, do not count; those of hosts that
 * are away only if no other one runs or could be woken.
 */
export function appStatusOf(machines: readonly JudgedMachine[]): AppStatus {
  const counted = machines.filter(({ record }) => record.releaseCommand === undefined && record.cordoned !== true);
  const [serving, away] = [counted.filter(({ isAway }) => !isAway), counted.filter(({ isAway }) => isAway)];
  const working = serving.filter(({ record, health }) => record.state === "running" && health.status !== "unhealthy");
  if (working.length > 0) return { word: "up", since: earliest(working.map(({ record }) => record.lastBoot?.at)) };
  const failing = serving.filter(isFailing);
  if (failing.length > 0) return { word: "failing", since: earliest(failing.map(failedAt)) };
  const asleep = serving.filter(({ record: { config, state } }) =>
    isWorker(config) ? state === "suspended" : isWokenByRequests(config),
  );
  if (asleep.length > 0) return { word: "asleep", since: latest(asleep.map(({ record }) => asleepSince(record))) };
  if (away.length > 0) return { word: "failing", since: null };
  return { word: "stopped", since: latest(serving.map(({ record }) => inStateSince(record))) };
}

function inStateSince({ stateSince, updatedAt }: JudgedMachine["record"]): string | undefined {
  return stateSince ?? updatedAt;
}

/** Of a machine on the way from one state to another, that is not known. */
function asleepSince(record: JudgedMachine["record"]): string | undefined {
  const { state, snapshot } = record;
  return state === "suspended" ? snapshot?.created_at : state === "stopped" ? inStateSince(record) : undefined;
}

function isFailing({ record: { state, crash }, health }: JudgedMachine): boolean {
  if (state === "running") return health.status === "unhealthy";
  return state === "failed" || state === "restarting" || (state === "stopped" && (crash ?? null) !== null);
}

/** Since when a check fails is not kept. */
function failedAt({ record }: JudgedMachine): string | undefined {
  return record.state === "running" ? undefined : (record.crash?.at ?? inStateSince(record));
}

function earliest(times: readonly (string | undefined)[]): string | null {
  return sorted(times)?.[0] ?? null;
}

function latest(times: readonly (string | undefined)[]): string | null {
  return sorted(times)?.at(-1) ?? null;
}

/** RFC 3339 in UTC sorts as text. Undefined if one is not known. */
function sorted(times: readonly (string | undefined)[]): string[] | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === times.length ? known.toSorted() : undefined;
}
