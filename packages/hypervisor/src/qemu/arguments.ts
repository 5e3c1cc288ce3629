/** QEMU's arguments, computed from a machine. Pure. */
import { join } from "node:path";
import type { VmmSpec } from "../contract.ts";
import { HOST_CPU } from "./cpu-choice.ts";
import { cpuArgument, type Hardware, hardwareOfType, PRESENT_HARDWARE } from "./hardware.ts";

/** The name by which the agent finds its port. */
const AGENT_PORT = "hibernaut.agent";

const MEMORY = "memory-backend-file,id=ram,";
/** What the guest writes does not get into the file. */
const PRIVATELY = ",share=off";

/** Devices that our guests don't use are off: each costs boot time. */
const MACHINE_OPTIONS = "i8042=off,smm=off,vmport=off,memory-backend=ram";

/** QEMU may not start programs or gain privileges: the platform needs neither after the start. */
const SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";

/**
 * `panic=-1` with `-no-reboot` ends QEMU when the guest's kernel panics. Mitigations are off because they protect the
 * processes of one guest from each other; a machine has one app, and mitigations cost boot time. The kernel's tests of its
 * own ciphers cost an emulated guest a tenth of a second, and the distribution has run them.
 */
const KERNEL_OPTIONS = [
  "console=ttyS0 quiet loglevel=3 panic=-1",
  "random.trust_cpu=on mitigations=off no_timer_check cryptomgr.notests noreplace-smp",
].join(" ");

interface QemuOptions {
  accelerator: "kvm" | "tcg";
  hardware: Hardware;
  /** What guests get under KVM: see `HostCpu`. */
  kvmCpu?: string | undefined;
  /** Wait, paused, for a snapshot to be loaded instead of booting. */
  incoming: boolean;
  /** In a jail, sockets and tap are open already: their descriptors. */
  handles?: Handles | undefined;
}

interface Handles {
  qmp: number;
  agent: number;
  tap: number;
}

/** Returns the sockets of a VMM, in its run directory. */
export function socketPaths(runDir: string): { qmp: string; agent: string } {
  return { qmp: join(runDir, "qmp.sock"), agent: join(runDir, "agent.sock") };
}

/** The file into which a QEMU in a jail writes its devices' state when its stream would contain its memory. */
export function devicesFile(runDir: string): string {
  return join(runDir, "devices");
}

/** Returns the arguments to start QEMU with. */
export function qemuArguments(spec: VmmSpec, options: QemuOptions): string[] {
  const { accelerator, hardware, kvmCpu, incoming, handles } = options;
  const { qmp, agent } = socketPaths(spec.runDir);
  const agentSocket = handles === undefined ? `path=${escape(agent)}` : `fd=${handles.agent}`;
  return [
    // By this name, a VMM of ours is found in the list of processes.
    ...["-name", `hibernaut-${spec.machineId},debug-threads=off`],
    ...["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"],
    ...["-machine", `${hardware.machineType},${MACHINE_OPTIONS}`, "-accel", accelerator],
    ...["-cpu", cpuArgument(hardware, accelerator, kvmCpu)],
    ...["-smp", String(spec.cpus), "-m", `${spec.memoryMb}M`],
    ...["-object", memory(spec)],
    // A resumed guest has its kernel in memory and never boots again, because of `-no-reboot`.
    ...(incoming ? [] : ["-kernel", spec.bundle.kernel, "-initrd", spec.bundle.initrd, "-append", KERNEL_OPTIONS]),
    ...["-chardev", `file,id=console,path=${escape(spec.consoleLog)},append=on`, "-serial", "chardev:console"],
    // All machines with this image share the file, and nothing writes to it, so it needs no lock.
    ...["-drive", `if=none,id=image,file=${escape(spec.image)},format=raw,readonly=on,file.locking=off`],
    ...["-device", "virtio-blk-pci,drive=image"],
    // QEMU's lock on the layer is a second guard against two VMMs for one machine.
    ...["-drive", `if=none,id=layer,file=${escape(spec.layer)},format=raw,discard=unmap,file.locking=on`],
    // It tells the agent of a fork, whose memory says otherwise, that it is another machine. No part of a snapshot.
    ...["-device", `virtio-blk-pci,drive=layer,serial=${spec.machineId}`],
    ...network(spec, handles),
    ...["-device", "virtio-serial-pci", "-chardev", `socket,id=agent,${agentSocket},server=on,wait=off`],
    ...["-device", `virtserialport,chardev=agent,name=${AGENT_PORT}`],
    // Last, so that the number of volumes does not move the other devices.
    ...spec.volumes.flatMap(volume),
    ...(handles === undefined
      ? ["-qmp", `unix:${escape(qmp)},server=on,wait=off`]
      : ["-chardev", `socket,id=qmp,fd=${handles.qmp},server=on,wait=off`, "-mon", "chardev=qmp,mode=control"]),
    ...["-sandbox", SANDBOX],
    ...(incoming ? ["-S", "-incoming", "defer"] : []),
  ];
}

/** The hardware of a QEMU that was started with these arguments, maybe by an earlier platform. */
export function hardwareIn(args: readonly string[]): Hardware {
  const machineType = args[args.indexOf("-machine") + 1]?.split(",")[0] ?? "";
  return hardwareOfType(machineType) ?? PRESENT_HARDWARE;
}

/** Whether the memory of a QEMU that was started with these arguments is mapped privately. */
export function isBorrowedIn(args: readonly string[]): boolean {
  return args.some((each) => each.startsWith(MEMORY) && each.endsWith(PRIVATELY));
}

/** The CPU of a QEMU that was started with these arguments. */
export function cpuIn(args: readonly string[]): string {
  return args[args.indexOf("-cpu") + 1] ?? HOST_CPU;
}

function memory({ memoryMb, memory: file, borrowed }: VmmSpec): string {
  return `${MEMORY}size=${memoryMb}M,mem-path=${escape(file)}${borrowed === true ? PRIVATELY : ",share=on"}`;
}

/**
 * A flush in the guest is a flush on the host, so what an app has committed survives the end of QEMU, the platform and
 * the power. This is QEMU's default, `cache=writeback`, stated because apps depend on it.
 */
function volume({ serial, file }: VmmSpec["volumes"][number], index: number): string[] {
  const drive = `if=none,id=vol${index},file=${escape(file)},format=raw,cache=writeback,discard=unmap,file.locking=on`;
  return ["-drive", drive, "-device", `virtio-blk-pci,drive=vol${index},serial=${serial}`];
}

function network({ network: plug }: VmmSpec, handles: Handles | undefined): string[] {
  const backend =
    plug.mode === "tap"
      ? handles
        ? `tap,id=net,fd=${handles.tap}`
        : `tap,id=net,ifname=${plug.device},script=no,downscript=no`
      : ["user,id=net", ...plug.ports.map((port) => `hostfwd=tcp:${plug.address}:${port}-:${port}`)].join(",");
  return ["-netdev", backend, "-device", `virtio-net-pci,netdev=net,mac=${plug.mac},romfile=`];
}

/** Doubles commas: QEMU's option parser takes a single one as the end of the value. */
function escape(value: string): string {
  return value.replaceAll(",", ",,");
}
