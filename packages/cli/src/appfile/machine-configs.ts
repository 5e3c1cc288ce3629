/** Turns an app file into machine configurations. Pure. */
import type { CheckConfig, FileConfig, MachineConfig } from "@hibernaut/client";
import { given } from "@hibernaut/lib/given";
import { CliError } from "../failure.ts";
import { fallbackGroup } from "./groups.ts";
import type { AppFile, Check, FileEntry, ProcessGroup, Service } from "./model.ts";
import { durationText } from "./quantities.ts";
import { byReach } from "./services.ts";

/** The metadata key that holds a machine's process group. */
export const GROUP_METADATA = "hibernaut_process_group";

/** The metadata key of the machine that runs a release command. Another deploy leaves such a machine alone. */
export const RELEASE_METADATA = "hibernaut_release_command";

/** Options of the command, which override the file. */
interface Overrides {
  image?: string | undefined;
  env?: Record<string, string> | undefined;
}

/** The machines of one process group. */
interface GroupMachines {
  config: MachineConfig;
  /** How many machines the group needs, if the file says so: as many as must keep running. */
  count?: number;
}

/** A configuration for each process group, in the order of the file. Throws when there is no image. */
export function machineConfigs(file: AppFile, overrides: Overrides = {}): Map<string, GroupMachines> {
  const image = overrides.image ?? file.image;
  if (image === undefined)
    throw new CliError(
      "invalid_argument",
      "No image. Add --image <reference>: `hibernaut deploy --build-only` builds one and prints its reference. Or set image under [build] in the app file.",
    );
  return new Map(
    file.groups.map((group) => {
      const services = file.services.filter(({ groups }) => groups.includes(group.name)).sort(byReach);
      const needed = Math.max(0, ...services.map(({ config }) => config.min_machines_running ?? 0));
      const config = configOf(file, group, services, { ...overrides, image });
      return [group.name, { config, ...(needed > 1 && { count: needed }) }];
    }),
  );
}

/**
 * The configuration of the machine that runs `release_command`: that of the default group, with the command in place of
 * its own. The platform leaves out what such a machine must not have. Undefined when the file has no such command.
 */
export function releaseConfig(file: AppFile, overrides: Overrides & { image: string }): MachineConfig | undefined {
  const { releaseCommand } = file.deploy;
  const [first] = file.groups;
  if (releaseCommand === undefined || first === undefined) return undefined;
  const { command, size } = releaseCommand;
  const group = { ...(file.groups.find(({ name }) => name === fallbackGroup(file.groups)) ?? first), command };
  const {
    metadata: _group,
    backup: _backup,
    guest,
    init: { exec: _exec, ...init } = {},
    ...config
  } = configOf(file, group, [], overrides);
  return {
    ...config,
    ...part("guest", { cpus: size?.cpus ?? guest?.cpus, memory_mb: size?.memoryMb ?? guest?.memory_mb }),
    init,
    metadata: { [RELEASE_METADATA]: "true" },
  };
}

function configOf(
  file: AppFile,
  group: ProcessGroup,
  services: readonly Service[],
  { image, env }: Overrides & { image: string },
): MachineConfig {
  const restart = file.restarts.findLast(({ groups }) => groups.includes(group.name));
  const size =
    file.sizes.findLast(({ groups }) => groups.includes(group.name)) ??
    file.sizes.findLast(({ groups }) => groups.length === 0);
  const checks = file.checks.filter(({ groups }) => groups.includes(group.name));
  const schedule = file.schedules.findLast(({ groups }) => groups.includes(group.name));
  const backup = file.backups.findLast(({ groups }) => groups.includes(group.name));
  const files = file.files.filter(({ groups }) => groups.includes(group.name));
  const mounts = file.mounts.filter(({ groups }) => groups.includes(group.name));
  return {
    image,
    ...part("guest", { cpus: size?.cpus, memory_mb: size?.memoryMb }),
    // Fly sets this variable, overriding the file's own, and apps read it.
    ...part("env", { ...file.env, PRIMARY_REGION: file.primaryRegion ?? file.env["PRIMARY_REGION"], ...env }),
    ...file.machine,
    ...part("init", { ...file.machine.init, ...(group.command && { cmd: group.command }) }),
    ...(services.length > 0 && { services: services.map(({ config }) => config) }),
    ...part("checks", Object.fromEntries(checks.map((check) => [check.name, checkConfig(check)]))),
    ...part("restart", { policy: restart?.policy, max_retries: restart?.maxRetries }),
    ...(mounts.length > 0 && {
      mounts: mounts.map(({ source, destination, sizeGb, snapshotRetention, scheduledSnapshots }) => ({
        volume: source,
        path: destination,
        ...given({
          size_gb: sizeGb,
          snapshot_retention: snapshotRetention,
          scheduled_snapshots: scheduledSnapshots,
        }),
      })),
    }),
    ...(files.length > 0 && { files: files.map(fileConfig) }),
    ...given({ schedule: schedule?.when, schedule_timezone: schedule?.timezone, backup: backup?.config }),
    metadata: { [GROUP_METADATA]: group.name },
  };
}

/** A local file has no content until `withLocalFiles` has read it. */
function fileConfig({ guestPath, content }: FileEntry): FileConfig {
  if ("secret" in content) return { guest_path: guestPath, secret_name: content.secret };
  return { guest_path: guestPath, raw_value: "raw" in content ? content.raw : "" };
}

/** Uses the names of Fly Machines, and durations as text with a unit. */
function checkConfig(check: Check): CheckConfig {
  const headers = Object.entries(check.headers).map(([name, value]) => ({ name, values: [value] }));
  const time = (seconds: number | undefined) => (seconds === undefined ? undefined : durationText(seconds));
  const options = given({
    interval: time(check.interval),
    timeout: time(check.timeout),
    grace_period: time(check.gracePeriod),
    method: check.method,
    path: check.path,
    headers: headers.length > 0 ? headers : undefined,
  });
  return { type: check.type, port: check.port, ...options };
}

type Parts = Required<MachineConfig>;

/** A part of a configuration; empty when all of its values are absent. */
function part<K extends keyof MachineConfig>(
  key: K,
  values: { [P in keyof Parts[K]]?: Parts[K][P] | undefined },
): Partial<Pick<MachineConfig, K>> {
  const made = given(values);
  return Object.keys(made).length === 0 ? {} : ({ [key]: made } as Partial<Pick<MachineConfig, K>>);
}
