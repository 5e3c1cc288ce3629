/** Usage as Prometheus counters. They continue where they were when the platform restarts. */
import { type Amounts, addAmounts, noAmounts } from "@hibernaut/domain/usage";
import { Counter, type Registry } from "prom-client";
import type { Usage } from "./usage.ts";

interface CounterDefinition {
  name: string;
  help: string;
  /** The label in addition to the app, and its values with the amounts that they count. */
  label?: string;
  values: Record<string, (used: Amounts) => number>;
}

/** The label of all apps that were destroyed. No app can have this name. */
const GONE = "(destroyed)";
const MS_PER_S = 1000;
const MB_MS_PER_GB_S = 1024 * 1000;
const gbSeconds = (mbMs: number) => mbMs / MB_MS_PER_GB_S;

const COUNTERS: readonly CounterDefinition[] = [
  {
    name: "hibernaut_usage_machine_seconds_total",
    help: "Seconds that machines spent running, suspended and stopped, by app.",
    label: "meter",
    values: {
      running: (used) => used.running_ms / MS_PER_S,
      suspended: (used) => used.suspended_ms / MS_PER_S,
      stopped: (used) => used.stopped_ms / MS_PER_S,
    },
  },
  {
    name: "hibernaut_usage_cpu_seconds_total",
    help: "Seconds that machines ran, multiplied by their CPUs, by app.",
    values: { "": (used) => used.cpu_ms / MS_PER_S },
  },
  {
    name: "hibernaut_usage_memory_gb_seconds_total",
    help: "Seconds that machines ran, multiplied by their memory in GB, by app.",
    values: { "": (used) => gbSeconds(used.memory_mb_ms) },
  },
  {
    name: "hibernaut_usage_storage_gb_seconds_total",
    help: "Storage in GB, multiplied by the seconds it was kept, by app and kind. Snapshots are not billed.",
    label: "kind",
    values: {
      layer: (used) => gbSeconds(used.layer_mb_ms),
      volume: (used) => gbSeconds(used.volume_mb_ms),
      snapshot: (used) => gbSeconds(used.snapshot_mb_ms),
    },
  },
  {
    name: "hibernaut_usage_wakes_total",
    help: "Starts of machines that a request at the proxy asked for, by app and kind of start.",
    label: "kind",
    values: { resume: (used) => used.resumes, cold: (used) => used.cold_starts },
  },
  {
    name: "hibernaut_usage_proxied_bytes_total",
    help: "Bytes between clients and machines, by app and direction as seen by the app.",
    label: "direction",
    values: { in: (used) => used.bytes_in, out: (used) => used.bytes_out },
  },
];

/** Registers the counters of usage. */
export function usageMetrics(
  registry: Registry,
  usage: Pick<Usage, "totals">,
  apps: () => readonly { name: string }[],
): void {
  const snapshot = onceAtATime(() => withoutGone(usage.totals(), new Set(apps().map(({ name }) => name))));
  for (const { name, help, label, values } of COUNTERS) {
    // A clock that was set back must not look like a restart, after which Prometheus counts from 0.
    let highest = new Map<string, number>();
    new Counter({
      name,
      help,
      labelNames: label === undefined ? ["app"] : ["app", label],
      registers: [registry],
      collect() {
        this.reset();
        const before = highest;
        highest = new Map();
        for (const [app, used] of snapshot()) {
          for (const [value, amount] of Object.entries(values)) {
            const key = `${value} ${app}`;
            const count = Math.max(amount(used), before.get(key) ?? 0);
            highest.set(key, count);
            this.inc(label === undefined ? { app } : { app, [label]: value }, count);
          }
        }
      },
    });
  }
}

/**
 * Adds up the apps that no longer exist: usage is never deleted, and a program that makes an app for each of its runs must
 * not make series without end. Pure.
 */
function withoutGone(totals: Map<string, Amounts>, apps: ReadonlySet<string>): Map<string, Amounts> {
  const kept = new Map<string, Amounts>();
  for (const [app, used] of totals) {
    if (apps.has(app)) kept.set(app, used);
    else {
      const sum = kept.get(GONE) ?? noAmounts();
      addAmounts(sum, used);
      kept.set(GONE, sum);
    }
  }
  return kept;
}

/** All counters of one scrape are collected in the same turn of the event loop: they share one reading. */
function onceAtATime<T>(read: () => T): () => T {
  let reading: { value: T } | undefined;
  return () => {
    if (reading === undefined) {
      reading = { value: read() };
      setImmediate(() => (reading = undefined));
    }
    return reading.value;
  };
}
