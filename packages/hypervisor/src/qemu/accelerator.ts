/**
 * Finds out which accelerator really works. `/dev/kvm` may open and create a virtual machine, yet never run a guest, so
 * the platform trusts KVM only after the guest bundle has booted under it.
 */
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { HibernautError } from "@hibernaut/domain/errors";
import type { GuestBundle } from "@hibernaut/domain/guest-bundle";
import { run } from "@hibernaut/lib/exec";
import { messageOf } from "@hibernaut/lib/text";
import type { Settings } from "@hibernaut/settings";
import { HOST_CPU } from "./cpu-choice.ts";
import { findCpu, type Proof, type ProofSettings } from "./find-cpu.ts";
import { qemuLimits, USUAL_LIMITS } from "./limits.ts";

const OLDEST_QEMU = [7, 2] as const;

/** The accelerator to use, and why. */
export interface AcceleratorChoice {
  accelerator: "kvm" | "tcg";
  /** What guests get under KVM, in the form of QEMU's `-cpu`. */
  cpu: string;
  /** For people. */
  reason: string;
}

/** `dataDir` is where the proof is stored. */
type ProofOptions = ProofSettings & Pick<Settings, "accelerator" | "qemu">;

/**
 * Returns QEMU's exact version, e.g. `7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)`. Rejects with `failed_precondition` when
 * QEMU is missing or too old.
 */
export async function qemuVersion(program: string, { versionMs } = USUAL_LIMITS): Promise<string> {
  const { stdout } = await run(program, ["--version"], { timeoutMs: versionMs }).catch((error: unknown) => {
    throw new HibernautError(
      "failed_precondition",
      `QEMU cannot be run (${messageOf(error)}). Install it with \`apt-get install qemu-system-x86\`.`,
    );
  });
  const version = /version (.+)/.exec(stdout)?.[1]?.trim() ?? "";
  const [major = 0, minor = 0] = version.split(".").map((part) => Number.parseInt(part, 10));
  if (major > OLDEST_QEMU[0] || (major === OLDEST_QEMU[0] && minor >= OLDEST_QEMU[1])) return version;
  throw new HibernautError(
    "failed_precondition",
    `QEMU ${version || "(unknown version)"} is too old; it must be ${OLDEST_QEMU.join(".")} or newer. Upgrade it, or set HIBERNAUT_QEMU to a newer one.`,
  );
}

/**
 * Chooses the accelerator, and boots a guest under KVM to prove that it works. Rejects with `failed_precondition` when
 * KVM is required by the settings and does not work.
 */
export async function proveAccelerator(
  options: ProofOptions,
  bundle: GuestBundle,
  signal: AbortSignal,
): Promise<AcceleratorChoice> {
  const cpu = HOST_CPU;
  if (options.accelerator === "tcg")
    return { accelerator: "tcg", cpu, reason: "software emulation, as set by HIBERNAUT_ACCELERATOR" };
  const missing = await missingKvm();
  const proof = missing === undefined ? await prove(options, bundle, signal) : { cpu, failure: missing, failed: [] };
  if (proof.failure === "") return { accelerator: "kvm", cpu: proof.cpu, reason: provenText(proof) };
  if (options.accelerator === "auto")
    return { accelerator: "tcg", cpu, reason: `software emulation, because KVM does not work here: ${proof.failure}` };
  throw new HibernautError(
    "failed_precondition",
    `HIBERNAUT_ACCELERATOR is kvm, but KVM does not work here: ${proof.failure}. Repair KVM (\`hibernaut doctor\` says more), or set HIBERNAUT_ACCELERATOR to auto.`,
  );
}

function provenText({ cpu, failed }: Proof): string {
  const proven = "KVM: the guest bundle boots under it";
  if (cpu === HOST_CPU) return proven;
  const [first] = failed;
  return `${proven} with the CPU ${cpu}${first === undefined ? "" : `, because with ${first.cpu}: ${first.failure}`}`;
}

async function missingKvm(): Promise<string | undefined> {
  return access("/dev/kvm", constants.R_OK | constants.W_OK).then(
    () => undefined,
    (error: NodeJS.ErrnoException) =>
      error.code === "ENOENT" ? "there is no /dev/kvm" : "this user may not open /dev/kvm",
  );
}

async function prove(options: ProofOptions, bundle: GuestBundle, signal: AbortSignal): Promise<Proof> {
  const limits = qemuLimits(options);
  const version = await qemuVersion(options.qemu, limits);
  return findCpu({ program: options.qemu, version, bundle, limits }, options, signal);
}
