/** What the metrics say about the host: its memory, and the disk of the data directory. */
import type { StatsFs } from "node:fs";
import { statfs } from "node:fs/promises";
import { totalmem } from "node:os";
import { readGauge } from "@hibernaut/telemetry";
import { Gauge, type Registry } from "prom-client";

interface HostParts {
  dataDir: string;
  /** How many bytes programs can still get. Undefined when the kernel does not say. */
  available(): number | undefined;
  /** How many of them are left for machines that start. Undefined when starts are never refused for lack of room. */
  room(): number | undefined;
}

/** Registers them. */
export function hostMetrics(registry: Registry, { dataDir, available, room }: HostParts): void {
  const registers = [registry];
  const memory = (name: string, help: string, read: () => number | undefined) =>
    readGauge(registry, { name, help, read });
  memory("hibernaut_host_memory_bytes", "Memory of the host, in bytes.", totalmem);
  memory(
    "hibernaut_host_memory_available_bytes",
    "Memory that programs can still get, of the host or of the platform's control group, in bytes.",
    available,
  );
  memory(
    "hibernaut_host_memory_room_bytes",
    "Memory that is left for machines to start, without the reserve and what awake machines may use, in bytes.",
    room,
  );
  const disk = (name: string, help: string, bytesOf: (found: StatsFs) => number) =>
    new Gauge({
      ...{ name, help, registers },
      async collect() {
        const found = await statfs(dataDir).catch(() => undefined);
        if (found === undefined) this.remove();
        else this.set(bytesOf(found));
      },
    });
  disk(
    "hibernaut_disk_size_bytes",
    "Size of the file system of the data directory, in bytes.",
    ({ blocks, bsize }) => blocks * bsize,
  );
  disk(
    "hibernaut_disk_available_bytes",
    "What the platform can still write to the file system of the data directory, in bytes.",
    ({ bavail, bsize }) => bavail * bsize,
  );
}
