/** What the metrics say about machines: how starts and suspends went, what waits, and what sleeps. */
import type { BootKind, MachineRecord } from "@hibernaut/domain/machine";
import { OPERATION_OUTCOMES, type Operation } from "@hibernaut/domain/operation";
import { AGENT_FAULTS, type Watch, type Workload } from "@hibernaut/machines";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** From a warm start to a cold start under emulation on a busy host. */
const OPERATION_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** From a step that only marks something to one that writes a large memory to a slow disk. */
const STEP_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30];

/** The label of a start that failed before it was known how the machine would come up. */
const UNKNOWN = "unknown";
/** The first word of a reason, which never changes: see docs/machines.md. */
const REASON_WORD = /^[a-z_]{1,40}(?=$|:)/;
/** There are about 20. Whatever else reasons may begin with one day, they do not make series without end. */
const MOST_REASONS = 40;
const OTHER = "other";
/** Reasons after which an alert wakes someone up: the machine had a memory, and lost it. */
const MEMORY_LOST = ["snapshot_missing", "snapshot_corrupt", "resume_failed", "resume_lost", "vmm_lost"];
const BOOT_KINDS: readonly BootKind[] = ["warm", "resume", "cold"];

interface MachineParts {
  machines(): readonly MachineRecord[];
  workload(): Workload;
}

/** Counts operations as they end. */
export function operationMetrics(registry: Registry): Watch {
  const registers = [registry];
  const starts = new Counter({
    name: "hibernaut_starts_total",
    help: "Starts of machines that ended, by how the machine came up and by outcome.",
    labelNames: ["kind", "outcome"],
    registers,
  });
  const startTimes = new Histogram({
    name: "hibernaut_start_seconds",
    help: "How long machines took to come up, by kind of start.",
    labelNames: ["kind"],
    buckets: OPERATION_SECONDS,
    registers,
  });
  const startSteps = new Histogram({
    name: "hibernaut_start_step_seconds",
    help: "How long the steps of starts took, by kind of start and step.",
    labelNames: ["kind", "step"],
    buckets: STEP_SECONDS,
    registers,
  });
  const colds = new Counter({
    name: "hibernaut_cold_starts_total",
    help: "Cold starts by the first word of their reason.",
    labelNames: ["reason"],
    registers,
  });
  const suspends = new Counter({
    name: "hibernaut_suspends_total",
    help: "Suspends of machines that ended, by outcome.",
    labelNames: ["outcome"],
    registers,
  });
  const suspendTimes = new Histogram({
    name: "hibernaut_suspend_seconds",
    help: "How long machines took to fall asleep.",
    buckets: OPERATION_SECONDS,
    registers,
  });
  const suspendSteps = new Histogram({
    name: "hibernaut_suspend_step_seconds",
    help: "How long the steps of suspends took, by step.",
    labelNames: ["step"],
    buckets: STEP_SECONDS,
    registers,
  });
  const faults = new Counter({
    name: "hibernaut_agent_errors_total",
    help: "What went wrong between the platform and the agents in machines, by kind.",
    labelNames: ["kind"],
    registers,
  });
  // Prometheus sees an increase only of what it has seen before.
  for (const outcome of OPERATION_OUTCOMES) {
    suspends.inc({ outcome }, 0);
    for (const kind of [...BOOT_KINDS, UNKNOWN]) starts.inc({ kind, outcome }, 0);
  }
  for (const kind of AGENT_FAULTS) faults.inc({ kind }, 0);
  for (const reason of MEMORY_LOST) colds.inc({ reason }, 0);
  const reasons = new Set<string>(MEMORY_LOST);
  const started = ({ kind, outcome, reason, steps, began, ended }: Operation) => {
    starts.inc({ kind: kind ?? UNKNOWN, outcome });
    if (kind === undefined || outcome !== "ok") return;
    if (kind === "cold") colds.inc({ reason: reasonLabel(reason, reasons) });
    startTimes.observe({ kind }, (ended - began) / 1000);
    for (const step of steps) startSteps.observe({ kind, step: step.name }, (step.ended - step.began) / 1000);
  };
  const suspended = ({ outcome, steps, began, ended }: Operation) => {
    suspends.inc({ outcome });
    if (outcome !== "ok") return;
    suspendTimes.observe((ended - began) / 1000);
    for (const step of steps) suspendSteps.observe({ step: step.name }, (step.ended - step.began) / 1000);
  };
  return {
    operation: (operation) => (operation.type === "start" ? started : suspended)(operation),
    agentFault: (kind) => faults.inc({ kind }),
  };
}

/** The label of a reason. `known` has those that were counted before. */
function reasonLabel(reason: string | undefined, known: Set<string>): string {
  const word = REASON_WORD.exec(reason ?? "")?.[0] ?? OTHER;
  if (known.has(word)) return word;
  if (known.size >= MOST_REASONS) return OTHER;
  known.add(word);
  return word;
}

/** Registers what is looked at with each scrape. */
export function machineMetrics(registry: Registry, { machines, workload }: MachineParts): void {
  const registers = [registry];
  const bytes = new Gauge({
    name: "hibernaut_snapshot_bytes",
    help: "Disk space of the snapshots of sleeping machines, in bytes.",
    registers,
    collect() {
      const snapshots = machines().flatMap(({ snapshot }) => snapshot ?? []);
      count.set(snapshots.length);
      bytes.set(snapshots.reduce((sum, { size_bytes }) => sum + size_bytes, 0));
    },
  });
  const count = new Gauge({ name: "hibernaut_snapshots", help: "Snapshots of sleeping machines.", registers });
  const queues = new Gauge({
    name: "hibernaut_queue_length",
    help: "What is in progress or waits: operations of machines, cold starts for their turn, starts for room in memory.",
    labelNames: ["queue"],
    registers,
    collect() {
      const { operations, bootSlots, room, unstored: lost, last: comingLast } = workload();
      queues.set({ queue: "operations" }, operations);
      queues.set({ queue: "boot_slots" }, bootSlots);
      queues.set({ queue: "room" }, room);
      unstored.set(lost);
      last.set(comingLast);
    },
  });
  const unstored = new Gauge({
    name: "hibernaut_unstored_outcomes",
    help: "Machines about which something happened that cannot be stored, usually because the disk is full.",
    registers,
  });
  const last = new Gauge({
    name: "hibernaut_machines_last",
    help: "Running machines that get CPUs after others, because they use much of them while the host is busy.",
    registers,
  });
}
