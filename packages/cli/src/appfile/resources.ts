/** The resources of a machine: `[[vm]]`, `[[mounts]]`, `[[restart]]`. */
import { mountPathRefusal } from "@hibernaut/domain/guest-paths";
import { CPUS, MEMORY_MB, RETENTION_DAYS, VOLUME_GB } from "@hibernaut/domain/limits";
import { isVolumeId, volumeNameRefusal } from "@hibernaut/domain/naming";
import type { Groups } from "./groups.ts";
import type { Mount, Restart, Size } from "./model.ts";
import type { Section } from "./section.ts";

/** Memory per CPU of a preset size. */
const MB_PER_CPU: Record<string, number> = { "shared-cpu": 256, performance: 2048, "dedicated-cpu": 2048 };
const NO_GPU = "Not supported: machines do not have GPUs.";

/** `[[vm]]`, `[vm]` and the old names `compute` and `computes`. */
export function readSizes(top: Section, groups: Groups): Size[] {
  return ["vm", "compute", "computes"]
    .flatMap((key) => top.sections(key))
    .map((section) => ({
      groups: groups.named(section),
      ...readSize(section),
    }));
}

/** The size that a table like `[[vm]]` asks for. */
export function readSize(section: Section): Omit<Size, "groups"> {
  const preset = readPreset(section);
  const memory = section.megabytes("memory", "m");
  const exact = section.integer("memory_mb", { minimum: 0, maximum: Number.MAX_SAFE_INTEGER }) || undefined;
  if (memory !== undefined && exact !== undefined && memory !== exact)
    section.warning("memory", `\`memory_mb\` overrides it with ${exact} MB. Remove one of the two.`);
  const size = {
    cpus: section.integer("cpus", CPUS) ?? preset?.cpus,
    memoryMb: exact ?? memory ?? preset?.memoryMb,
  };
  refuseImpossible(section, size);
  section.ignored("cpu_kind", "No effect: all CPUs are the host's.");
  section.ignored(["gpus", "gpu_kind"], NO_GPU);
  section.ignored("kernel_args", "Not supported: the guest bundle defines the kernel arguments.");
  section.ignored(["host_dedication_id", "host_dedication_key"], "No effect: there is one host.");
  section.ignored(
    "persist_rootfs",
    "Not supported. To keep files outside volumes when the machine stops, set keep_layer = true at the top.",
  );
  section.finish();
  return size;
}

function readPreset(section: Section): { cpus: number; memoryMb: number } | undefined {
  const name = section.string("size");
  const [, kind = "", count] = /^(shared-cpu|performance|dedicated-cpu)-(\d{1,3})x$/.exec(name ?? "") ?? [];
  const perCpu = MB_PER_CPU[kind];
  if (perCpu !== undefined) return { cpus: Number(count), memoryMb: Number(count) * perCpu };
  if (name !== undefined && /^(?:a10|l40s|a100-)/.test(name)) section.warning("size", NO_GPU);
  else if (name !== undefined)
    section.error("size", `Unknown size "${name}". Use one such as "shared-cpu-1x", or set memory and cpus.`);
  return undefined;
}

/** Reports a size that the platform would refuse, at the key that sets it. */
function refuseImpossible(section: Section, { cpus, memoryMb }: Omit<Size, "groups">): void {
  const memoryKey = ["memory_mb", "memory", "size"].find((key) => section.has(key)) ?? "memory";
  if (memoryMb !== undefined && (memoryMb < MEMORY_MB.minimum || memoryMb > MEMORY_MB.maximum))
    section.error(
      memoryKey,
      `This is ${memoryMb} MB; a machine has ${MEMORY_MB.minimum} to ${MEMORY_MB.maximum} MB of memory.`,
    );
  if (memoryMb !== undefined && !Number.isInteger(memoryMb))
    section.error(memoryKey, `This is ${memoryMb} MB. Use whole megabytes.`);
  if (cpus !== undefined && cpus > CPUS.maximum)
    section.error("size", `This is ${cpus} CPUs; a machine has up to ${CPUS.maximum}. Set \`cpus\`.`);
}

/** `[[mounts]]`, `[mounts]` and the old `[mount]`. */
export function readMounts(top: Section, groups: Groups): Mount[] {
  const sections = ["mounts", "mount"].flatMap((key) => top.sections(key));
  const mounts: Mount[] = [];
  for (const section of sections) mounts.push(...readMount(section, groups, mounts));
  return mounts;
}

/** The name of the volume of a mount that names none. */
const DEFAULT_VOLUME = "data";

function readMount(section: Section, groups: Groups, before: readonly Mount[]): Mount[] {
  if (section.keys.length === 0) return [];
  const source = section.string("source");
  const destination = section.string("destination");
  const sizeMb = section.megabytes("initial_size", "g");
  const inGroups = groups.of(section);
  section.ignored(
    ["auto_extend_size_threshold", "auto_extend_size_increment", "auto_extend_size_limit"],
    "Not supported: a volume keeps its size until you extend it.",
  );
  const snapshotRetention = section.integer("snapshot_retention", RETENTION_DAYS);
  const scheduledSnapshots = section.boolean("scheduled_snapshots");
  section.finish();
  if (source === undefined)
    section.findings.warning(
      section.path,
      `The mount has no \`source\`: its volume is named \`${DEFAULT_VOLUME}\`. Add a name.`,
    );
  else refuseName(section, source);
  if (destination === undefined) {
    section.findings.error(
      section.path,
      'The mount has no `destination`. Add the directory, as in destination = "/data".',
    );
    return [];
  }
  refuseDestination(section, destination, others(before, inGroups));
  const sizeGb = sizeMb === undefined ? undefined : Math.max(VOLUME_GB.minimum, Math.ceil(sizeMb / 1024));
  if (sizeGb !== undefined && sizeGb > VOLUME_GB.maximum)
    section.error("initial_size", `This is ${sizeGb} GB; a volume has up to ${VOLUME_GB.maximum} GB.`);
  return [
    { groups: inGroups, source: source ?? DEFAULT_VOLUME, destination, sizeGb, snapshotRetention, scheduledSnapshots },
  ];
}

function refuseName(section: Section, source: string): void {
  const message = isVolumeId(source) ? undefined : volumeNameRefusal(source);
  if (message !== undefined) section.error("source", message);
}

/** The directories of the mounts before this one that are in the same machines. */
function others(before: readonly Mount[], groups: readonly string[]): string[] {
  return before.filter((mount) => mount.groups.some((name) => groups.includes(name))).map((mount) => mount.destination);
}

function refuseDestination(section: Section, destination: string, taken: readonly string[]): void {
  if (!destination.startsWith("/") || /^\/+$/.test(destination))
    return section.error("destination", `Use an absolute directory other than /, not "${destination}".`);
  const message = mountPathRefusal(destination, taken);
  if (message !== undefined) section.error("destination", message);
}

const POLICIES = {
  no: "no",
  never: "no",
  "on-failure": "on-failure",
  "on-fail": "on-failure",
  always: "always",
} as const;

/** `[[restart]]` and `[restart]`. */
export function readRestarts(top: Section, groups: Groups): Restart[] {
  return top.sections("restart").map((section) => {
    const policy = section.choice("policy", Object.keys(POLICIES) as (keyof typeof POLICIES)[]);
    const range = { minimum: 0, maximum: 1000 };
    const restart = {
      groups: groups.of(section),
      policy: policy && POLICIES[policy],
      maxRetries: section.integer("retries", range) ?? section.integer("max_retries", range),
    };
    section.finish();
    return restart;
  });
}
