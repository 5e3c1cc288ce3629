import type { Quota } from "@hibernaut/domain/quota";
import type { Settings } from "@hibernaut/settings";

/** The limits of apps that have none of their own. */
export function quotaOf(settings: Settings): Quota {
  return {
    machines: settings.quotaMachines,
    running: settings.quotaRunning,
    cpus: settings.quotaCpus,
    memory_mb: settings.quotaMemoryMb,
    volume_gb: settings.quotaVolumeGb,
    hostnames: settings.quotaHostnames,
    certificates: settings.quotaCertificates,
    previews: settings.quotaPreviews,
  };
}
