/** Whether one QEMU can resume what another one suspended. Pure. */
import { differenceIn, type FailedCarryOver, type HypervisorIdentity } from "../contract.ts";
import { type Hardware, hardwareOf } from "./hardware.ts";

interface CarryOverPolicy {
  /** `series`: another build of the same major and minor version may resume a snapshot. `exact`: none may. */
  accept: "series" | "exact";
  /** What has failed before. */
  failed: readonly FailedCarryOver[];
}

/**
 * Says why the QEMU that is there now cannot resume what `was` suspended: a stable word, a colon and the difference.
 * Undefined when it can, which it then does on the hardware that the snapshot was taken on.
 */
export function refusedCarryOver(
  was: HypervisorIdentity,
  now: HypervisorIdentity,
  policy: CarryOverPolicy,
): string | undefined {
  const hardware = hardwareOf(was);
  // Not one of ours, or not QEMU at all.
  if (hardware === undefined) return differenceIn(was, now, ALL);
  const different = differenceIn(was, now, ["hypervisor", "accelerator"]);
  if (different !== undefined) return different;
  const version = isPortable(was, hardware)
    ? refusedVersion(was.version, now.version, policy)
    : differenceIn(was, now, ["version"]) && changed(was.version, now.version, NEEDS_ITS_OWN);
  if (version !== undefined) return version;
  // Emulated CPUs come with the hardware. Under KVM there is only the host's.
  if (was.accelerator !== "kvm") return undefined;
  return differenceIn(was, now, ["cpu_model"]) ?? lostFeatures(was.cpu_features, now.cpu_features);
}

/** Whether everything that the guest sees of its hardware is known, whichever build shows it. */
function isPortable(
  { accelerator, cpu_features: features = [] }: HypervisorIdentity,
  { versioned }: Hardware,
): boolean {
  return versioned && (accelerator !== "kvm" || features.length > 0);
}

const ALL = ["hypervisor", "version", "accelerator", "cpu_model", "machine_type"] as const;
const NEEDS_ITS_OWN = "it was taken on hardware without a version, as in Hibernaut 0.1, which only its own build has";

/** The series of a version: `7.2` for `7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)`. Undefined when it is in another form. */
export function seriesOf(version: string): string | undefined {
  return /^(\d+\.\d+)\.\d+\b/.exec(version)?.[1];
}

function refusedVersion(was: string, now: string, { accept, failed }: CarryOverPolicy): string | undefined {
  if (was === now) return undefined;
  if (accept === "exact") return changed(was, now, "HIBERNAUT_SNAPSHOT_QEMU is exact");
  const series = seriesOf(was);
  if (series === undefined || series !== seriesOf(now)) return changed(was, now, "another series of QEMU");
  const before = failed.find(({ to }) => to === now);
  return before && changed(was, now, `this version could not resume a snapshot of ${before.from}`);
}

function changed(was: string, now: string, why: string): string {
  return `hypervisor_version_changed: hypervisor version was ${was}, is ${now} (${why})`;
}

/** Features that guests were given may be in use; new ones would appear in the middle of a guest's life. */
function lostFeatures(was: readonly string[] = [], now: readonly string[] = []): string | undefined {
  // Version 0.1 recorded the model alone.
  if (was.length === 0) return undefined;
  const differences = [
    ...was.filter((one) => !now.includes(one)).map((one) => `-${one}`),
    ...now.filter((one) => !was.includes(one)).map((one) => `+${one}`),
  ];
  return differences.length === 0 ? undefined : `cpu_model_changed: the host's CPU differs: ${differences.join(" ")}`;
}
