/** QEMU's command line: a pure function of what a machine is. */
import { join } from "node:path";
import type { VmmSpec } from "../contract.ts";

/** Name of the agent's port; the agent finds it by this. */
const AGENT_PORT = "hibernaut.agent";

/**
 * `q35` because `microvm` hangs at boot on a busy host under emulation (its only clock source for
 * calibration is the PIT). Devices that no guest of ours uses are off: each costs boot time.
 */
export const MACHINE_TYPE = "q35";
/**
 * Raise it with every change of the devices below: a snapshot is loaded only into the devices that
 * it was taken from.
 */
export const DEVICE_LAYOUT = 1;
const MACHINE_OPTIONS = "i8042=off,smm=off,vmport=off,memory-backend=ram";

/** Only what the platform does to QEMU after its start is allowed: no new programs, no privileges. */
const SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";

/**
 * `panic=-1` with `-no-reboot` ends QEMU when the guest's kernel panics. Mitigations protect guest
 * processes from each other inside one app's machine: there is one app, and they cost boot time.
 */
const KERNEL_OPTIONS = "console=ttyS0 quiet loglevel=3 panic=-1 random.trust_cpu=on mitigations=off no_timer_check";

interface QemuOptions {
  accelerator: "kvm" | "tcg";
  cpuModel: string;
  /** Wait, paused, for the state of an earlier guest instead of booting. */
  incoming: boolean;
}

/** Sockets of a VMM, in its run folder. */
export function socketPaths(runDir: string): { qmp: string; agent: string } {
  return { qmp: join(runDir, "qmp.sock"), agent: join(runDir, "agent.sock") };
}

/** The process name that tells a VMM of ours, and of which data folder, in the list of processes. */
function processName(spec: Pick<VmmSpec, "machineId" | "runDir">): string {
  return `hibernaut-${spec.machineId},debug-threads=off`;
}

export function qemuArguments(spec: VmmSpec, { accelerator, cpuModel, incoming }: QemuOptions): string[] {
  const { qmp, agent } = socketPaths(spec.runDir);
  return [
    ...["-name", processName(spec)],
    ...["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"],
    ...["-machine", `${MACHINE_TYPE},${MACHINE_OPTIONS}`, "-accel", accelerator, "-cpu", cpuModel],
    ...["-smp", String(spec.cpus), "-m", `${spec.memoryMb}M`],
    ...["-object", `memory-backend-file,id=ram,size=${spec.memoryMb}M,mem-path=${escape(spec.memory)},share=on`],
    // A guest that goes on where it stood has its kernel in its memory, and never boots again: see `-no-reboot`.
    ...(incoming ? [] : ["-kernel", spec.bundle.kernel, "-initrd", spec.bundle.initrd, "-append", KERNEL_OPTIONS]),
    ...["-chardev", `file,id=console,path=${escape(spec.consoleLog)},append=on`, "-serial", "chardev:console"],
    // The image is shared by all machines that run it, and nobody writes to it: no lock.
    ...["-drive", `if=none,id=image,file=${escape(spec.image)},format=raw,readonly=on,file.locking=off`],
    ...["-device", "virtio-blk-pci,drive=image"],
    // The layer's lock is QEMU's own second guard against two VMMs for one machine.
    ...["-drive", `if=none,id=layer,file=${escape(spec.layer)},format=raw,discard=unmap,file.locking=on`],
    ...["-device", "virtio-blk-pci,drive=layer"],
    ...network(spec),
    ...["-device", "virtio-serial-pci", "-chardev", `socket,id=agent,path=${escape(agent)},server=on,wait=off`],
    ...["-device", `virtserialport,chardev=agent,name=${AGENT_PORT}`],
    // Last, so that the devices before them stay where they are, however many volumes there are.
    ...spec.volumes.flatMap(volume),
    ...["-qmp", `unix:${escape(qmp)},server=on,wait=off`],
    ...["-sandbox", SANDBOX],
    ...(incoming ? ["-S", "-incoming", "defer"] : []),
  ];
}

/**
 * A flush of the guest is one of the host (`cache=writeback`, QEMU's default, said because what apps have committed
 * rests on it): what was acknowledged survives the end of QEMU, of the platform and of the power.
 */
function volume({ serial, file }: VmmSpec["volumes"][number], index: number): string[] {
  const drive = `if=none,id=vol${index},file=${escape(file)},format=raw,cache=writeback,discard=unmap,file.locking=on`;
  return ["-drive", drive, "-device", `virtio-blk-pci,drive=vol${index},serial=${serial}`];
}

function network({ network: plug }: VmmSpec): string[] {
  const backend =
    plug.mode === "tap"
      ? `tap,id=net,ifname=${plug.device},script=no,downscript=no`
      : ["user,id=net", ...plug.ports.map((port) => `hostfwd=tcp:${plug.address}:${port}-:${port}`)].join(",");
  return ["-netdev", backend, "-device", `virtio-net-pci,netdev=net,mac=${plug.mac},romfile=`];
}

/** QEMU's option parser takes a comma as the end of a value unless it is doubled. */
function escape(value: string): string {
  return value.replaceAll(",", ",,");
}
