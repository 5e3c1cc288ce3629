/** What the metrics say about the connections of this process. */
import { Counter, Gauge, type Registry } from "prom-client";
import type { ConnectionBudget } from "./budget.ts";

/** Registers them. */
export function connectionMetrics(registry: Registry, { counts, limits, machines }: ConnectionBudget): void {
  const registers = [registry];
  new Gauge({
    name: "hibernaut_connections",
    help: "Open connections of clients, and those to machines.",
    labelNames: ["side", "state"],
    registers,
    collect() {
      this.set({ side: "client", state: "idle" }, counts.idle);
      this.set({ side: "client", state: "busy" }, counts.open - counts.idle);
      this.set({ side: "machine", state: "any" }, machines.taken);
    },
  });
  new Gauge({
    name: "hibernaut_connections_max",
    help: "How many of them this process may have.",
    labelNames: ["side"],
    registers,
    collect() {
      this.set({ side: "client" }, limits.clients);
      this.set({ side: "machine" }, limits.machines);
    },
  });
  new Counter({
    name: "hibernaut_connections_shed_total",
    help: "Idle connections of clients that were closed to make room for others.",
    registers,
    collect() {
      this.reset();
      this.inc(counts.shed);
    },
  });
  new Counter({
    name: "hibernaut_connections_refused_total",
    help: "Connections that were closed as soon as they came: all others were in use, or their address had too many.",
    labelNames: ["reason"],
    registers,
    collect() {
      this.reset();
      for (const reason of ["full", "address"] as const) this.inc({ reason }, counts.refused[reason]);
    },
  });
}
