/** What the metrics say about kept VMMs. */
import { EVICTION_REASONS, type WarmKeeper } from "@hibernaut/machines";
import { Counter, Gauge, type Registry } from "prom-client";

/** Registers them. */
export function warmMetrics(registry: Registry, warm: Pick<WarmKeeper, "kept" | "evicted">): void {
  const registers = [registry];
  new Gauge({
    name: "hibernaut_warm_machines",
    help: "Suspended machines whose paused virtual machine is kept in memory.",
    registers,
    collect() {
      this.set(warm.kept.length);
    },
  });
  new Gauge({
    name: "hibernaut_warm_bytes",
    help: "Memory that they take together, in bytes.",
    registers,
    collect() {
      this.set(warm.kept.reduce((sum, { bytes }) => sum + bytes, 0));
    },
  });
  new Counter({
    name: "hibernaut_warm_evictions_total",
    help: "Kept virtual machines that ended before their machine was started, by reason.",
    labelNames: ["reason"],
    registers,
    collect() {
      this.reset();
      for (const reason of EVICTION_REASONS) this.inc({ reason }, warm.evicted.get(reason) ?? 0);
    },
  });
}
