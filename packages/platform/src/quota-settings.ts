/** The quota that the settings give every app. */
import type { Quota } from "@hibernaut/domain/quota";
import type { Settings } from "@hibernaut/settings";

/** The limits of apps that have none of their own. */
export function quotaOf({
  quotaMachines,
  quotaRunning,
  quotaCpus,
  quotaMemoryMb,
  quotaVolumeGb,
  quotaHostnames,
  quotaCertificates,
}: Pick<
  Settings,
  | "quotaMachines"
  | "quotaRunning"
  | "quotaCpus"
  | "quotaMemoryMb"
  | "quotaVolumeGb"
  | "quotaHostnames"
  | "quotaCertificates"
>): Quota {
  return {
    machines: quotaMachines,
    running: quotaRunning,
    cpus: quotaCpus,
    memory_mb: quotaMemoryMb,
    volume_gb: quotaVolumeGb,
    hostnames: quotaHostnames,
    certificates: quotaCertificates,
  };
}
