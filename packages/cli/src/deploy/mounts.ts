/** Mounts as users write them, by volume name: the configuration of a machine has the ids of its volumes. */
import type { MachineConfig } from "@hibernaut/client";

/** The configuration with volume names in place of ids, to compare it or to create a similar machine. */
export function withVolumeNames(config: MachineConfig): MachineConfig {
  if (config.mounts === undefined) return config;
  const mounts = config.mounts.map(({ volume, source, name, ...mount }) => ({
    ...mount,
    volume: name ?? volume ?? source ?? "",
  }));
  return { ...config, mounts };
}
