/** The QEMU that is installed, and which snapshots it takes over: the same for the platform and for `doctor`. */
import type { Settings } from "../../settings.ts";
import type { HypervisorIdentity } from "../contract.ts";
import { qemuVersion } from "./accelerator.ts";
import { refusedCarryOver } from "./carry-over.ts";
import { FailedCarryOvers } from "./failed-carry-overs.ts";
import { readHostCpu } from "./host-cpu.ts";
import { QemuHypervisor } from "./index.ts";

interface OpenOptions {
  accelerator: "kvm" | "tcg";
  /** Parent of all run directories, and of all machine directories. */
  runRoot: string;
  machineRoot: string;
}

interface OpenedQemu {
  hypervisor: QemuHypervisor;
  carryOvers: FailedCarryOvers;
  /** See `HypervisorRule` in `snapshots/manifest.ts`. */
  refusedHypervisor(was: HypervisorIdentity, now: HypervisorIdentity): string | undefined;
}

/** Looks at the QEMU of the settings, and changes nothing. Rejects with `failed_precondition` when it is missing or too old. */
export async function openQemu(
  { qemu: program, dataDir, snapshotQemu: accept }: Pick<Settings, "qemu" | "dataDir" | "snapshotQemu">,
  { accelerator, runRoot, machineRoot }: OpenOptions,
): Promise<OpenedQemu> {
  const version = await qemuVersion(program);
  const host = accelerator === "kvm" ? await readHostCpu(program) : undefined;
  const carryOvers = await FailedCarryOvers.open(dataDir);
  return {
    hypervisor: new QemuHypervisor({ program, version, accelerator, host, runRoot, machineRoot }),
    carryOvers,
    refusedHypervisor: (was, now) => refusedCarryOver(was, now, { accept, failed: carryOvers.all }),
  };
}
