/** What the app of a machine is started with: pure functions of its configuration and image. */
import { constants } from "node:os";
import { guestSize, type MachineConfig, type StopConfig, servicePorts, swapMbOf } from "@hibernaut/domain/config";
import { guestFiles } from "@hibernaut/domain/guest-files";
import type { GuestNetwork, NetworkAttachment } from "@hibernaut/domain/guest-network";
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { Mount } from "@hibernaut/domain/volume";
import type { GuestConfig, GuestIdentity } from "@hibernaut/guest";
import type { ImageConfig } from "@hibernaut/images";
import { OWN_TIMEOUT_S } from "./decide/stop-terms.ts";

/** `exec` replaces everything; `entrypoint` and `cmd` replace the image's, and a new entrypoint drops the image's cmd, as in Docker. */
export function commandOf(config: MachineConfig, image: ImageConfig): string[] {
  const init = config.init ?? {};
  if (init.exec !== undefined && init.exec.length > 0) return init.exec;
  const cmd = init.cmd ?? (init.entrypoint === undefined ? image.cmd : []);
  return [...(init.entrypoint ?? image.entrypoint), ...cmd];
}

/**
 * The image's variables, the machine's over them, the app's secrets over those, as with Fly, and the platform's over
 * all, each also under the name that Fly gives it.
 */
export function environmentOf(
  machine: MachineRecord,
  image: ImageConfig,
  network: GuestNetwork,
  secrets: Record<string, string>,
): Record<string, string> {
  const fromImage = image.env.map((line): [string, string] => {
    const at = line.indexOf("=");
    return [line.slice(0, at), line.slice(at + 1)];
  });
  const platform = {
    APP_NAME: machine.app,
    MACHINE_ID: machine.id,
    MACHINE_VERSION: machine.version,
    REGION: machine.region,
    IMAGE_REF: machine.config.image,
    VM_MEMORY_MB: String(guestSize(machine.config).memoryMb),
    PRIVATE_IP: network.address.replace(/\/.*/, ""),
  };
  const twins = Object.entries(platform).flatMap(([name, value]): [string, string][] => [
    [`HIBERNAUT_${name}`, value],
    [`FLY_${name}`, value],
  ]);
  const { env = {} } = machine.config;
  return Object.fromEntries([...fromImage, ...Object.entries(env), ...Object.entries(secrets), ...twins]);
}

/** All that the agent is told before it starts the app. */
export function guestConfigOf(
  machine: MachineRecord,
  image: ImageConfig,
  network: GuestNetwork,
  secrets: Record<string, string>,
): GuestConfig {
  return {
    hostname: machine.id,
    args: commandOf(machine.config, image),
    env: environmentOf(machine, image, network, secrets),
    user: machine.config.init?.user ?? image.user,
    workdir: machine.config.init?.working_dir ?? image.workingDir,
    network,
    ports: servicePorts(machine.config),
    volumes: (machine.config.mounts ?? []).map(diskOf),
    swapMb: swapMbOf(machine.config),
    files: guestFiles(machine.config.files, machine.app, secrets),
  };
}

/** All that the agent of a fork is told before it lets the app run on: what another memory than its own cannot know. */
export function identityOf(
  machine: MachineRecord,
  image: ImageConfig,
  { mac, guest: network }: NetworkAttachment,
  secrets: Record<string, string>,
): GuestIdentity {
  return { hostname: machine.id, mac, network, env: environmentOf(machine, image, network, secrets) };
}

/** The disk that the agent looks for: a volume's id is its serial number. */
function diskOf({ volume = "", path }: Mount): { serial: string; path: string } {
  return { serial: volume, path };
}

/** The signal that asks the app to end, by number, and how long it has until it is killed: as `terms` say, as far as they do. */
export function stopOf(
  config: MachineConfig,
  image: Pick<ImageConfig, "stopSignal"> | undefined,
  terms: StopConfig = {},
): { signal: number; graceMs: number } {
  const wanted = { ...config.stop_config, ...terms };
  const name = wanted.signal ?? image?.stopSignal ?? "SIGTERM";
  const number = /^\d+$/.test(name) ? Number(name) : constants.signals[name as NodeJS.Signals];
  const signal = number ?? constants.signals.SIGTERM;
  // Nothing is left to wait for after SIGKILL, whatever the guest says.
  return { signal, graceMs: signal === constants.signals.SIGKILL ? 0 : (wanted.timeout ?? OWN_TIMEOUT_S) * 1000 };
}
