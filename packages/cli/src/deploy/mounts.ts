/** Mounts as they are asked for, by name: a machine's own configuration has the ids of its own volumes. */
import type { MachineConfig } from "@hibernaut/client";

/** The configuration for another machine like it, or for comparing: with names in place of ids. */
export function withVolumeNames(config: MachineConfig): MachineConfig {
  if (config.mounts === undefined) return config;
  const mounts = config.mounts.map(({ volume, source, name, ...mount }) => ({
    ...mount,
    volume: name ?? volume ?? source ?? "",
  }));
  return { ...config, mounts };
}
