/** What the metrics say about machines that come from the memory of another one. */
import { BIRTH_KINDS, type Resources } from "@hibernaut/machines";
import { Counter, Gauge, type Registry } from "prom-client";

/** Registers it. */
export function birthMetrics(registry: Registry, { counts, pools }: Resources["births"]): void {
  const registers = [registry];
  new Counter({
    name: "hibernaut_births_total",
    help: "Machines that were made from the memory of another one, by kind.",
    labelNames: ["kind"],
    registers,
    collect() {
      this.reset();
      for (const kind of BIRTH_KINDS) this.inc({ kind }, counts.of(kind));
    },
  });
  new Gauge({
    name: "hibernaut_pool_machines",
    help: "Machines in the pools of templates: wanted, ready to be taken, and of these in memory.",
    labelNames: ["what"],
    registers,
    collect() {
      const { size, ready, warm } = pools.total();
      this.set({ what: "wanted" }, size);
      this.set({ what: "ready" }, ready);
      this.set({ what: "warm" }, warm);
    },
  });
}
