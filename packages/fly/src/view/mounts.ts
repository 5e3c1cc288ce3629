/** What clients read of a volume where it is mounted. Pure. */
import type { PlatformVolume } from "./platform.ts";

interface Mount {
  volume?: string;
}

/** Returns the configuration with the name and size of each volume, in GB: who clones a machine makes a volume like that. */
export function withVolumes<T extends Record<string, unknown>>(config: T, volumes: readonly PlatformVolume[]): T {
  const mounts = config["mounts"] as readonly Mount[] | undefined;
  if (mounts === undefined || volumes.length === 0) return config;
  const described = mounts.map((mount) => {
    const volume = volumes.find(({ id }) => id === mount.volume);
    return volume === undefined ? mount : { ...mount, name: volume.name, size_gb: volume.size_gb };
  });
  return { ...config, mounts: described };
}
