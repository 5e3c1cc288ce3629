/** What the coordinator keeps about one machine, and what follows from it. Pure. */
import type { Crash, MachineRecord, MachineState } from "@hibernaut/domain/machine";
import { CONSUMED, isKnownToCrash, isPrewarming } from "@hibernaut/machines";
import { type TableMachine, toWire } from "./messages.ts";
import { policyOf, type ServicePolicy } from "./service-policy.ts";
import { ownPortsOf, tcpPortsOf } from "./tcp/ports.ts";

/** What came for a worker while it slept. Times are in milliseconds of the coordinator's clock. */
interface WorkerCalls {
  /** When something first came. Undefined if nothing has. */
  since: number | undefined;
  /** Something came, and it could not be woken then. */
  missed: boolean;
  /** When it was last started because nothing else could wake it. */
  triedAt: number;
  /** Why it could not be started, as was last told. */
  told: string | undefined;
}

/**
 * The kernel repeats a packet that got no answer after twice the time as before, up to this, in milliseconds: what came for a worker
 * that woke late may be as late once more.
 */
const LATEST_REPEAT_MS = 120_000;

export interface CoordinatedMachine {
  record: MachineRecord;
  /** Undefined for a machine without services. */
  policy: ServicePolicy | undefined;
  /**
   * The same for machines that can take each other's load: those of an app with HTTP services, or with the same port. A
   * database spares a web server no work. Kept, because every request asks for it.
   */
  pool: string;
  /** Since when no proxy has had anything open on the machine, in milliseconds of the coordinator's clock. */
  idleSince: number;
  /** The machine is about to be put to sleep; false again as soon as a request needs it. */
  draining: boolean;
  /** Of a worker. */
  calls: WorkerCalls;
  /** In excess of what the app needs: no new requests, and sleep once those that are open have ended. */
  resting: boolean;
}

function poolOf(app: string, policy: ServicePolicy | undefined): string {
  return `${app} ${policy?.web === true ? "web" : policy?.port}`;
}

/**
 * Returns the machine with a new record. A machine that has just come up counts as used now.
 *
 * @param canWait whether connections of its own outlive its sleep, and wake it: those to apps of its network do, on a bridge
 */
export function withRecord(
  before: CoordinatedMachine | undefined,
  record: MachineRecord,
  { now, canWait }: { now: number; canWait: boolean },
): CoordinatedMachine {
  const stated = policyOf(record.config);
  const policy = stated?.worker === true && !canWait ? undefined : stated;
  const pool = poolOf(record.app, policy);
  if (before === undefined) {
    const calls = { since: undefined, missed: false, triedAt: Number.NEGATIVE_INFINITY, told: undefined };
    return { record, policy, pool, idleSince: now, draining: false, calls, resting: false };
  }
  if (record.state === "running" && before.record.state !== "running") {
    const { since = now } = before.calls;
    before.idleSince = now + Math.min(now - since, LATEST_REPEAT_MS);
    Object.assign(before.calls, { since: undefined, missed: false, told: undefined });
  }
  if (record.state !== "running") before.resting = false;
  // Its start was accepted, and came to nothing.
  if (before.record.state === "starting" && sleepsOn(record)) before.calls.missed = true;
  return Object.assign(before, { record, policy, pool });
}

/** Returns what proxies are told about the machine. `shares`: its app shares a network. */
export function tableMachineOf(
  { record, policy, resting }: CoordinatedMachine,
  { healthy, shares }: { healthy: boolean; shares: boolean },
): TableMachine {
  const { crash, lastBoot } = record;
  const tcp = tcpPortsOf(record.config);
  const plain = tcp.filter(({ tls, proxyProtocol }) => tls === undefined && proxyProtocol === undefined);
  const handled = tcp.filter((one) => !plain.includes(one));
  const own = shares ? ownPortsOf(record.config) : [];
  const wire = policy === undefined ? null : toWire(record.cordoned ? { ...policy, autostart: false } : policy);
  const isForNeighbours = policy?.worker === true || (own.length > 0 && policy?.web !== true);
  return {
    id: record.id,
    app: record.app,
    name: record.name,
    state: record.state,
    address: record.address,
    lastBoot: lastBoot && { kind: lastBoot.kind, at: lastBoot.at },
    healthy: healthy && record.cordoned !== true,
    reason: record.stateReason,
    crash: crash && isKnownToCrash(crash) ? crashOf(crash) : null,
    unreachable: record.state === "running" ? (record.unreachable ?? null) : null,
    cordoned: record.cordoned === true,
    ...(plain.length > 0 && { tcp: plain }),
    ...(handled.length > 0 && { tcpHandled: handled }),
    ...(own.length > 0 && { own }),
    ...(policy?.wakePage && startsCold(record) && { cold: true }),
    ...(AT_START.has(record.state) && startsCold(record) && { withoutMemory: true }),
    resting: resting || isPrewarming(record),
    policy: isForNeighbours ? null : wire,
    ...(isForNeighbours && wire !== null && { ownPolicy: wire }),
  };
}

function crashOf({ reason, retry_at: retryAt, exit_code: code }: Crash): TableMachine["crash"] {
  return { reason, retryAt, ...(code === null && { lost: true }) };
}

/** States that a machine with memory can be in without a guest. */
const AT_START: ReadonlySet<MachineState> = new Set(["suspended", "starting"]);

/** Whether the machine's next start, or the one that it is in, is a cold one. A resume uses its snapshot up on the way. */
function startsCold({ state, snapshot, coldReason }: MachineRecord): boolean {
  return snapshot === null && !(state === "starting" && coldReason === CONSUMED);
}

/** Milliseconds until the machine may be idle; Infinity if it cannot become idle. */
export function untilIdleMs({ record, policy, idleSince }: CoordinatedMachine, load: number, now: number): number {
  if (record.state !== "running" || record.cordoned || isPrewarming(record)) return Number.POSITIVE_INFINITY;
  if (policy === undefined || policy.autostop === "off" || load > 0) return Number.POSITIVE_INFINITY;
  return Math.max(idleSince + policy.idleTimeoutMs - now, keptAwakeMs(record));
}

/**
 * Whether nothing can wake a worker that sleeps, so that it would sleep forever: its connections have ended, as with the
 * platform that carried them, or with its memory, which an update or a new secret costs, or what came over them has been missed.
 */
export function isStranded({ record, policy, calls: { missed } }: CoordinatedMachine, waits: boolean): boolean {
  if (policy?.worker !== true || record.cordoned === true || !sleepsOn(record)) return false;
  if (missed) return true;
  // One that has planned its wake does not wait for a connection.
  return record.state === "suspended" && (record.wakeAt ?? null) === null && (!waits || record.snapshot === null);
}

/** Whether the machine sleeps, or still has the memory that it could not be woken with. */
function sleepsOn({ state, snapshot }: MachineRecord): boolean {
  return state === "suspended" || (state === "failed" && snapshot !== null);
}

/** For how many more milliseconds the app's keep-awake lease lasts. */
export function keptAwakeMs({ keepAwake }: MachineRecord): number {
  return keepAwake ? Math.max(0, Date.parse(keepAwake.until) - Date.now()) : 0;
}
