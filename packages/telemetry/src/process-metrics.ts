/** What the metrics say about this process: the platform, or a proxy of its own. */
import { readdirSync } from "node:fs";
import { FAULT_KINDS, type FaultKind, faultCounts } from "@hibernaut/lib/background";
import { mostFiles } from "@hibernaut/lib/open-files";
import { Counter, Histogram, type Registry } from "prom-client";
import { readGauge } from "./gauge.ts";

/** How often the event loop is asked whether it is late, in milliseconds: ten short timers a second cost nothing. */
const LOOK_MS = 100;
/** From what nobody notices to what fails health checks. */
const DELAY_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/**
 * Registers them, under the names that Prometheus' clients share, and begins to look at the event loop. Returns a function
 * that ends that.
 */
export function processMetrics(registry: Registry): () => void {
  const registers = [registry];
  const gauge = (name: string, help: string, read: () => number | undefined) =>
    readGauge(registry, { name, help, read });
  gauge("process_resident_memory_bytes", "Memory of this process that is in RAM, in bytes.", () =>
    process.memoryUsage.rss(),
  );
  gauge("process_open_fds", "Open file descriptors of this process.", openFiles);
  gauge("process_max_fds", "How many file descriptors this process may open.", mostFiles);
  const startedAt = Date.now() / 1000 - process.uptime();
  gauge("process_start_time_seconds", "When this process started, in seconds since 1970.", () => startedAt);
  let counted = 0;
  const cpu = new Counter({
    ...{ name: "process_cpu_seconds_total", help: "CPU time of this process, in seconds.", registers },
    collect() {
      const { user, system } = process.cpuUsage();
      const seconds = (user + system) / 1e6;
      cpu.inc(seconds - counted);
      counted = seconds;
    },
  });
  countFaults(registry);
  return watchEventLoop(registry);
}

function countFaults(registry: Registry): void {
  const before: Record<FaultKind, number> = { background: 0, rejection: 0 };
  const faults = new Counter({
    name: "hibernaut_unexpected_errors_total",
    help: "Errors that nobody waited for, by how they were noticed.",
    labelNames: ["kind"],
    registers: [registry],
    collect() {
      const now = faultCounts();
      for (const kind of FAULT_KINDS) {
        faults.inc({ kind }, now[kind] - before[kind]);
        before[kind] = now[kind];
      }
    },
  });
}

/**
 * A histogram that only grows, so that any number of Prometheus servers may read it. A timer that is late shows that
 * something else held the event loop.
 */
function watchEventLoop(registry: Registry): () => void {
  const delays = new Histogram({
    name: "hibernaut_event_loop_delay_seconds",
    help: "How late a timer of this process was, looked at ten times a second.",
    buckets: DELAY_SECONDS,
    registers: [registry],
  });
  let due = performance.now() + LOOK_MS;
  const timer = setInterval(() => {
    const now = performance.now();
    delays.observe(Math.max(0, now - due) / 1000);
    due = now + LOOK_MS;
  }, LOOK_MS).unref();
  return () => clearInterval(timer);
}

function openFiles(): number | undefined {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return undefined; // without procfs, or without a file descriptor to read it with
  }
}
