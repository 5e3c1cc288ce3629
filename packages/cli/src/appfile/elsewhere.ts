/** Keys that are often written in the wrong table, and where they belong. */
import { type Fields, keysOf, MACHINE_FIELDS, SERVICE_FIELDS } from "@hibernaut/domain/fields";
import type { Path } from "./positions.ts";

const TOP = "at the top of the file, before the first [table]";
const SERVICE = "in [http_service]";
const keys = (fields: Fields) => keysOf(fields).map(([, key]) => key);
const within = (names: readonly string[], place: string) => Object.fromEntries(names.map((name) => [name, place]));
const PLACES: Record<string, string> = {
  ...within(["app", "primary_region", "status_page", "console_command", ...keys(MACHINE_FIELDS)], TOP),
  ...within(["internal_port", "replay_from", ...keys(SERVICE_FIELDS)], SERVICE),
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
