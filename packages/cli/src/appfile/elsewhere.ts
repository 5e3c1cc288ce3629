/** Keys that are often written in the wrong table, and where they belong. */
import type { Path } from "./positions.ts";

const TOP = "at the top of the file, before the first [table]";
const SERVICE = "in [http_service]";
const PLACES: Record<string, string> = {
  ...Object.fromEntries(
    [
      "app",
      "primary_region",
      "kill_signal",
      "kill_timeout",
      "swap_size_mb",
      "keep_layer",
      "on_host_loss",
      "status_page",
      "console_command",
    ].map((key) => [key, TOP]),
  ),
  ...Object.fromEntries(
    [
      "internal_port",
      "force_https",
      "auto_stop_machines",
      "auto_stop_fallback",
      "auto_start_machines",
      "min_machines_running",
      "idle_timeout",
      "keep_warm",
      "placement",
      "machine_hostnames",
      "replay_from",
      "wake_page",
    ].map((key) => [key, SERVICE]),
  ),
  release_command: "in [deploy]",
  strategy: "in [deploy]",
  dockerfile: "in [build]",
  image: "in [build]",
  memory: "in [[vm]]",
  memory_mb: "in [[vm]]",
  cpus: "in [[vm]]",
  cpu_kind: "in [[vm]]",
  soft_limit: "in [http_service.concurrency]",
  hard_limit: "in [http_service.concurrency]",
  destination: "in [[mounts]]",
  initial_size: "in [[mounts]]",
  when: "in [schedule]",
  timezone: "in [schedule]",
};

/** The end of the sentence "It belongs ...", or undefined when the key belongs nowhere. */
export function elsewhere(key: string, path: Path): string | undefined {
  const place = Object.hasOwn(PLACES, key) ? PLACES[key] : undefined;
  // At the top, such a key is in its place already, and known.
  return path.length === 0 && place === TOP ? undefined : place;
}
