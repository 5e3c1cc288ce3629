/** What the metrics say about the connections of this process. */
import { Counter, Gauge, type Registry } from "prom-client";
import type { ConnectionBudget } from "./budget.ts";

/** Registers them. */
export function connectionMetrics(registry: Registry, { counts, limits, machines }: ConnectionBudget): void {
  const registers = [registry];
  new Gauge({
    name: "hibernaut_connections",
    help: "Open connections: of clients with an open request and without one, and to machines.",
    labelNames: ["kind"],
    registers,
    collect() {
      this.set({ kind: "busy" }, counts.open - counts.idle);
      this.set({ kind: "idle" }, counts.idle);
      this.set({ kind: "machine" }, machines.taken);
    },
  });
  new Gauge({
    name: "hibernaut_connections_max",
    help: "How many connections this process may have, of clients and to machines.",
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
