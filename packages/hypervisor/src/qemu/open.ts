/** The QEMU that is installed, and which snapshots it takes over: the same for the platform and for `doctor`. */
import type { Settings } from "@hibernaut/settings";
import type { HypervisorIdentity } from "../contract.ts";
import { qemuVersion } from "./accelerator.ts";
import { refusedCarryOver } from "./carry-over.ts";
import { FailedCarryOvers } from "./failed-carry-overs.ts";
import { readHostCpu } from "./host-cpu.ts";
import { QemuHypervisor } from "./index.ts";
import type { Jail } from "./jail/jail.ts";
import { type LimitSettings, qemuLimits } from "./limits.ts";
import type { QmpFault } from "./qmp.ts";

interface OpenOptions {
  accelerator: "kvm" | "tcg";
  /** What guests get under KVM, as the proof found it. */
  cpu: string;
  /** See `findJail`. Without it, guests run as the platform does. */
  jail?: Jail | undefined;
  /** Parent of all run directories, and of all machine directories. */
  runRoot: string;
  machineRoot: string;
  /** Counts what goes wrong between the platform and QEMU. By default, nobody does. */
  onFault?: ((fault: QmpFault) => void) | undefined;
}

type OpenSettings = LimitSettings & Pick<Settings, "qemu" | "dataDir" | "snapshotQemu">;

interface OpenedQemu {
  hypervisor: QemuHypervisor;
  carryOvers: FailedCarryOvers;
  /** See `HypervisorRule` in `snapshots/manifest.ts`. */
  refusedHypervisor(was: HypervisorIdentity, now: HypervisorIdentity): string | undefined;
}

/** Looks at the QEMU of the settings, and changes nothing. Rejects with `failed_precondition` when it is missing or too old. */
export async function openQemu(settings: OpenSettings, options: OpenOptions): Promise<OpenedQemu> {
  const { qemu: program, dataDir, snapshotQemu: accept } = settings;
  const { accelerator, cpu } = options;
  const limits = qemuLimits(settings);
  const version = await qemuVersion(program, limits);
  const host = accelerator === "kvm" ? await readHostCpu(program, "kvm", { cpu, limits }) : undefined;
  const carryOvers = await FailedCarryOvers.open(dataDir);
  return {
    hypervisor: new QemuHypervisor({ ...options, program, version, host, limits }),
    carryOvers,
    refusedHypervisor: (was, now) => refusedCarryOver(was, now, { accept, failed: carryOvers.all }),
  };
}
