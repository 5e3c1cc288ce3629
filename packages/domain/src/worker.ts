/** What wakes a machine that sleeps. Pure, and part of the CLI's bundle. */
import type { MachineConfig } from "./config.ts";

/** Whether a machine sleeps although nothing connects to it: what comes over connections of its own wakes it. */
export function isWorker({
  services,
  worker_idle_timeout: idle,
}: Pick<MachineConfig, "services" | "worker_idle_timeout">): boolean {
  return (services ?? []).length === 0 && idle !== undefined;
}

/** Whether requests, or connections to its ports, wake it. */
export function isWokenByRequests({ services }: Pick<MachineConfig, "services">): boolean {
  return (services ?? []).some(({ autostart = true }) => autostart);
}
