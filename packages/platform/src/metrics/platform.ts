/** Everything that the platform's metrics say, except for the requests to its API and its proxy, and usage. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { EventStream } from "@hibernaut/events";
import type { Workload } from "@hibernaut/machines";
import { Counter, Gauge, type Registry } from "prom-client";
import { hostMetrics } from "./host.ts";
import { machineMetrics } from "./machines.ts";

interface PlatformParts {
  info: { version: string; hypervisor_version: string; accelerator: string; network: string };
  dataDir: string;
  machines(): readonly MachineRecord[];
  workload(): Workload;
  /** How much memory programs can still get, in bytes. Undefined when the kernel does not say. */
  memory(): number | undefined;
  draining(): boolean;
  /** Whether the checks of a machine let it take requests. */
  isHealthy(machineId: string): boolean;
  stream: Pick<EventStream, "readers">;
  /** How many first packets of connections the kernel dropped, because their client opened too many. */
  droppedConnections(): Promise<number>;
}

/** Registers it. */
export function platformMetrics(registry: Registry, parts: PlatformParts): void {
  const { info, dataDir, machines, workload, memory, draining, isHealthy, stream, droppedConnections } = parts;
  const registers = [registry];
  const labelNames = Object.keys(info);
  new Gauge({ name: "hibernaut_info", help: "What this platform is; always 1.", labelNames, registers }).set(info, 1);
  new Gauge({
    name: "hibernaut_draining",
    help: "1 while the platform drains and starts no machines, otherwise 0.",
    registers,
    collect() {
      this.set(draining() ? 1 : 0);
    },
  });
  new Gauge({
    name: "hibernaut_unhealthy_machines",
    help: "Running machines that get no requests, because a check fails or requests cannot reach the app.",
    registers,
    collect() {
      const failing = ({ id, state, unreachable }: MachineRecord) =>
        state === "running" && ((unreachable ?? null) !== null || !isHealthy(id));
      this.set(machines().filter(failing).length);
    },
  });
  const readers = new Gauge({
    name: "hibernaut_stream_readers",
    help: "Clients that follow the stream of events.",
    registers,
    collect() {
      const { count, lag: behind } = stream.readers();
      readers.set(count);
      lag.set(behind);
    },
  });
  const lag = new Gauge({
    name: "hibernaut_stream_lag_events",
    help: "How many events the slowest of them has not been sent yet.",
    registers,
  });
  new Counter({
    name: "hibernaut_network_connections_dropped_total",
    help: "First packets of connections that the kernel dropped, because their address opened too many per second.",
    registers,
    async collect() {
      // Without it, all else is still worth knowing.
      const dropped = await droppedConnections().catch(() => undefined);
      if (dropped === undefined) return;
      this.reset();
      this.inc(dropped);
    },
  });
  hostMetrics(registry, { dataDir, available: memory, room: () => workload().roomBytes });
  machineMetrics(registry, { machines, workload });
}

/** Registers the counter of what goes wrong between the platform and QEMU, by `kinds`. Returns what to call when it does. */
export function qmpMetrics(registry: Registry, kinds: readonly string[]): (kind: string) => void {
  const faults = new Counter({
    name: "hibernaut_qmp_errors_total",
    help: "Commands to QEMU that failed, by kind.",
    labelNames: ["kind"],
    registers: [registry],
  });
  // Prometheus sees an increase only of what it has seen before.
  for (const kind of kinds) faults.inc({ kind }, 0);
  return (kind) => faults.inc({ kind });
}
