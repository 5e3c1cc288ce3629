/** Turns a configuration of Fly's clients into one of the platform. Pure. */
import type { MachineConfig } from "@hibernaut/domain/config";
import { given } from "@hibernaut/lib/given";
import { Refusal } from "../failure.ts";
import { durationMs } from "./duration.ts";
import type { FlyConfig } from "./schema.ts";
import { checkOf, serviceChecks, serviceOf } from "./service.ts";

/** A part of a configuration that a machine would miss if it were only kept, and what to do instead. */
type Missing = readonly [has: (config: FlyConfig) => boolean, sentence: string];

const MISSING: readonly Missing[] = [
  [
    ({ containers = [] }) => containers.length > 0,
    "config.containers: a machine runs one image. Make a machine for each container.",
  ],
  [
    ({ processes = [] }) => processes.length > 1,
    "config.processes: a machine runs one process. Make a machine for each.",
  ],
  [
    ({ processes = [] }) =>
      processes.some((each) => each.user !== undefined || (each.secrets ?? each.env_from) !== undefined),
    "config.processes: `user`, `secrets` and `env_from` mean nothing here. The user is that of the image, and secrets are those of the app.",
  ],
  [({ guest }) => (guest?.gpus ?? 0) > 0 || guest?.gpu_kind !== undefined, "config.guest: machines have no GPU."],
  [({ statics = [] }) => statics.length > 0, "config.statics: the proxy serves no files. Let the app serve them."],
  [({ volumes = [] }) => volumes.length > 0, "config.volumes: temporary directories are those of the image."],
  [
    ({ files = [] }) => files.some(({ image_config }) => image_config !== undefined),
    "config.files: `image_config` means nothing here. Send `raw_value` or `secret_name`.",
  ],
];

/** Sizes by name: what kind, and how many CPUs. */
const SIZE = /^(shared-cpu|performance)-([1-9]\d?)x$/;
/** Memory of such a size for each of its CPUs, in MB. */
const MEMORY_MB: Readonly<Record<string, number>> = { "shared-cpu": 256, performance: 2048 };

/**
 * The configuration has to be {@link normalised}. Throws a {@link Refusal}: 400 for what is wrong, 501 for what the machine would miss. What has no effect on what runs,
 * such as `metrics` and `dns`, is passed over.
 */
export function toPlatform(config: FlyConfig): MachineConfig {
  for (const [has, sentence] of MISSING) if (has(config)) throw new Refusal(501, sentence);
  if (config.image === undefined || config.image === "")
    throw new Refusal(400, "invalid_argument: config.image is missing.");
  const { services = [], metadata, schedule, auto_destroy, files, restart, mounts } = config;
  const { exec, entrypoint, cmd, swap_size_mb } = config.init ?? {};
  const init = given({ exec, entrypoint, cmd, swap_size_mb });
  const checks = {
    ...serviceChecks(services),
    ...Object.fromEntries(
      Object.entries(config.checks ?? {}).map(([name, check]) => [name, checkOf(check, `checks.${name}`)]),
    ),
  };
  return {
    image: config.image,
    ...part("guest", guestOf(config)),
    ...part("env", config.env ?? {}),
    ...part("init", init),
    ...(services.length > 0 && { services: services.map(serviceOf) }),
    ...part("checks", checks),
    ...part("restart", restartOf(restart)),
    ...part("stop_config", stopOf(config.stop_config)),
    ...(mounts !== undefined && mounts.length > 0 && { mounts: mounts.map(mountOf) }),
    ...(files !== undefined &&
      files.length > 0 && {
        files: files.map(({ guest_path, raw_value, secret_name, mode }) =>
          given({ guest_path, raw_value, secret_name, mode }),
        ),
      }),
    ...given({
      schedule: schedule === "" ? undefined : schedule,
      auto_destroy: auto_destroy === true ? true : undefined,
    }),
    ...(keepsRootfs(config) && { keep_layer: true }),
    ...part("metadata", metadata ?? {}),
  } as MachineConfig;
}

/** A part of the configuration, unless it is empty. */
function part(key: string, value: object): object {
  return Object.keys(value).length === 0 ? {} : { [key]: value };
}

function guestOf({ guest, size = "" }: FlyConfig): object {
  const [, kind = "", count] = SIZE.exec(size) ?? [];
  if (size !== "" && count === undefined)
    throw new Refusal(
      400,
      `invalid_argument: config.size is ${JSON.stringify(size)}. Use guest.cpus and guest.memory_mb.`,
    );
  const cpus = count === undefined ? undefined : Number(count);
  const memory = cpus === undefined ? undefined : (MEMORY_MB[kind] ?? 0) * cpus;
  return given({ cpus: guest?.cpus ?? cpus, memory_mb: guest?.memory_mb ?? memory });
}

function mountOf({ volume, name, path }: NonNullable<FlyConfig["mounts"]>[number]): object {
  return { volume: volume ?? name, path };
}

function restartOf(restart: FlyConfig["restart"]): object {
  const { policy, max_retries } = restart ?? {};
  if (policy === "spot-price")
    throw new Refusal(501, "config.restart.policy: there are no prices here. Use no, on-failure or always.");
  return given({ policy: policy === "" ? undefined : policy, max_retries });
}

function stopOf(stop: FlyConfig["stop_config"]): object {
  const seconds =
    stop?.timeout === undefined ? undefined : Math.ceil(durationMs(stop.timeout, "stop_config.timeout") / 1000);
  return given({ signal: stop?.signal === "" ? undefined : stop?.signal, timeout: seconds });
}

function keepsRootfs({ rootfs }: FlyConfig): boolean {
  return rootfs?.persist === "always" || rootfs?.persist === "restart";
}
