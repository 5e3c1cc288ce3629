/** What the coordinator keeps about one machine, and what follows from it. Pure. */
import type { Crash, MachineRecord } from "@hibernaut/domain/machine";
import { CONSUMED, isKnownToCrash, isPrewarming } from "@hibernaut/machines";
import { type TableMachine, toWire } from "./messages.ts";
import { policyOf, type ServicePolicy } from "./service-policy.ts";
import { ownPortsOf, tcpPortsOf } from "./tcp/ports.ts";

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
  /** Something came for a worker, which could not be woken then. */
  missed: boolean;
  /** When a worker that nothing can wake was last told to start, in milliseconds of the coordinator's clock. */
  calledAt: number;
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
    const nothingYet = { draining: false, missed: false, calledAt: Number.NEGATIVE_INFINITY, resting: false };
    return { record, policy, pool, idleSince: now, ...nothingYet };
  }
  if (record.state === "running" && before.record.state !== "running") before.idleSince = now;
  if (record.state !== "running") before.resting = false;
  else before.missed = false;
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
    resting: resting || isPrewarming(record),
    policy: isForNeighbours ? null : wire,
    ...(isForNeighbours && wire !== null && { ownPolicy: wire }),
  };
}

function crashOf({ reason, retry_at: retryAt, exit_code: code }: Crash): TableMachine["crash"] {
  return { reason, retryAt, ...(code === null && { lost: true }) };
}

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
export function isStranded({ record, policy, missed }: CoordinatedMachine, waits: boolean): boolean {
  if (policy?.worker !== true || record.state !== "suspended" || record.cordoned === true) return false;
  return missed || !waits || record.snapshot === null;
}

/** For how many more milliseconds the app's keep-awake lease lasts. */
export function keptAwakeMs({ keepAwake }: MachineRecord): number {
  return keepAwake ? Math.max(0, Date.parse(keepAwake.until) - Date.now()) : 0;
}
