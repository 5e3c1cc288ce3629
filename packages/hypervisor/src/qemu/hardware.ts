/**
 * The hardware that guests see: QEMU's machine type and CPU model. A snapshot fits only the hardware that it was taken
 * on, so every set that was ever in use stays listed here. Pure.
 */
import type { HypervisorIdentity } from "../contract.ts";
import { HOST_CPU } from "./cpu-choice.ts";

/** Increase this with every change to the devices in `arguments.ts`. A snapshot can be loaded only into the same devices. */
const DEVICE_LAYOUT = 1;

/** A machine type and the CPU models that belong to it. */
export interface Hardware {
  machineType: string;
  /** Under software emulation. KVM shows the host's CPU, or what it can of it. */
  emulatedCpu: string;
  /** Whether both names mean the same in every build of QEMU of one series. */
  versioned: boolean;
}

/**
 * What new machines get. `q35`, because `microvm` hangs at boot on a busy host under emulation (it can calibrate only
 * against the PIT); of QEMU 7.2, because that is the oldest QEMU that we support, so all of them have it.
 *
 * The CPU is the first Intel with everything that x86-64-v3 asks for, without what QEMU 7.2 cannot emulate. `enforce` makes
 * a QEMU that cannot emulate the rest refuse to start, instead of taking features away from a guest that uses them.
 * What it costs, and why not less: docs/decisions/0008-snapshots-outlive-upgrades.md.
 */
export const PRESENT_HARDWARE: Hardware = {
  machineType: "pc-q35-7.2",
  emulatedCpu: "Haswell-v2,-pcid,-x2apic,-tsc-deadline,-invpcid,enforce",
  versioned: true,
};

/** What version 0.1 gave its machines. `q35` is the newest one of each QEMU, and `max` all that a build can emulate. */
const HARDWARE_0_1: Hardware = { machineType: "q35", emulatedCpu: "max", versioned: false };

const EVERY_HARDWARE: readonly Hardware[] = [PRESENT_HARDWARE, HARDWARE_0_1];

/** The CPU of the host, as far as guests under KVM depend on it. */
export interface HostCpu {
  /** For people, such as `AMD EPYC`. */
  name: string;
  /** What guests get of it, in the form of QEMU's `-cpu`: `host`, or less where KVM refuses a part. */
  cpu: string;
  /** What QEMU makes of it for guests, sorted. */
  features: readonly string[];
}

/** What QEMU is told about the CPU. `kvmCpu` is what guests get under KVM: by default, the host's. */
export function cpuArgument({ emulatedCpu }: Hardware, accelerator: "kvm" | "tcg", kvmCpu = HOST_CPU): string {
  return accelerator === "kvm" ? kvmCpu : emulatedCpu;
}

/** The hardware with a machine type, as QEMU's `-machine` names it. Undefined when it never was ours. */
export function hardwareOfType(machineType: string): Hardware | undefined {
  return EVERY_HARDWARE.find((hardware) => hardware.machineType === machineType);
}

/** The hardware that a snapshot was taken on. Undefined when it never was ours. */
export function hardwareOf({ machine_type: recorded }: Pick<HypervisorIdentity, "machine_type">): Hardware | undefined {
  return EVERY_HARDWARE.find((hardware) => machineTypeOf(hardware) === recorded);
}

/** The identity of a QEMU that runs guests on this hardware. `host` is needed under KVM only. */
export function identityOf(
  { version, accelerator, host }: { version: string; accelerator: "kvm" | "tcg"; host?: HostCpu | undefined },
  hardware: Hardware,
): HypervisorIdentity {
  return {
    hypervisor: "qemu",
    version,
    accelerator,
    cpu_model: accelerator === "kvm" ? `${host?.cpu ?? HOST_CPU} (${host?.name ?? "unknown"})` : hardware.emulatedCpu,
    ...(accelerator === "kvm" && host !== undefined && { cpu_features: [...host.features] }),
    machine_type: machineTypeOf(hardware),
  };
}

function machineTypeOf({ machineType }: Hardware): string {
  return `${machineType} (devices ${DEVICE_LAYOUT})`;
}
