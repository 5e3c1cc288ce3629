/**
 * Finds out which accelerator really works. `/dev/kvm` may open and create a virtual machine, yet never run a guest, so
 * the platform trusts KVM only after the guest bundle has booted under it.
 */

import { constants } from "node:fs";
import { access, mkdir, readFile } from "node:fs/promises";
import { cpus, release } from "node:os";
import { join } from "node:path";
import { HibernautError } from "../../domain/errors.ts";
import type { GuestBundle } from "../../domain/guest-bundle.ts";
import { hostBootId } from "../../lib/boot-id.ts";
import { replaceFile } from "../../lib/durable.ts";
import { run } from "../../lib/exec.ts";
import { messageOf } from "../../lib/text.ts";
import type { Settings } from "../../settings.ts";
import { type FailedCpu, HOST_CPU, nextCpu } from "./cpu-choice.ts";
import { type LimitSettings, qemuLimits, USUAL_LIMITS } from "./limits.ts";
import { bootUnderKvm, type ProofSubject, TooLate } from "./proof.ts";

/** `HIBERNAUT_KVM_CPU`: the platform chooses. */
const AUTO = "auto";
const OLDEST_QEMU = [7, 2] as const;

/** The accelerator to use, and why. */
export interface Verdict {
  accelerator: "kvm" | "tcg";
  /** What guests get under KVM, in the form of QEMU's `-cpu`. */
  cpu: string;
  /** For people. */
  reason: string;
}

/**
 * `dataDir` is where the verdict is stored. It is valid for one boot of the host, one QEMU, one guest bundle and one
 * setting of the CPU.
 */
type ProofOptions = LimitSettings & Pick<Settings, "accelerator" | "qemu" | "kvmCpu" | "kvmProofTimeoutMs" | "dataDir">;

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
): Promise<Verdict> {
  const cpu = HOST_CPU;
  if (options.accelerator === "tcg")
    return { accelerator: "tcg", cpu, reason: "software emulation, as set by HIBERNAUT_ACCELERATOR" };
  const missing = await missingKvm();
  const proof =
    missing === undefined ? await cachedProof(options, bundle, signal) : { cpu, failure: missing, failed: [] };
  if (proof.failure === "") return { accelerator: "kvm", cpu: proof.cpu, reason: provenText(proof) };
  if (options.accelerator === "auto")
    return { accelerator: "tcg", cpu, reason: `software emulation, because KVM does not work here: ${proof.failure}` };
  throw new HibernautError(
    "failed_precondition",
    `HIBERNAUT_ACCELERATOR is kvm, but KVM does not work here: ${proof.failure}. Repair KVM (\`hibernaut doctor\` says more), or set HIBERNAUT_ACCELERATOR to auto.`,
  );
}

/** What is known about KVM on this host. */
interface Proof {
  /** Why it does not work; "" when it does. */
  failure: string;
  /** The CPU that guests boot with. */
  cpu: string;
  /** Those that did not work. */
  failed: FailedCpu[];
}

interface StoredProof extends Proof {
  /** The boot of the host, the QEMU, the guest bundle and the setting that this was found out with. */
  key: string;
  /** The host's CPU and kernel, and the QEMU: with the same ones, the same CPU is tried first after a reboot. */
  host: string;
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

async function cachedProof(options: ProofOptions, bundle: GuestBundle, signal: AbortSignal): Promise<Proof> {
  const limits = qemuLimits(options);
  const version = await qemuVersion(options.qemu, limits);
  const key = [await hostBootId(), version, bundle.version, options.kvmCpu].join(" ");
  const host = [cpus()[0]?.model.trim() ?? "unknown", release(), version].join(" ");
  const file = join(options.dataDir, "kvm-verdict.json");
  const stored = parseProof(await readFile(file, "utf8").catch(() => ""));
  if (stored?.key === key) return stored;
  const worked = stored?.host === host && stored.failure === "" ? stored : undefined;
  const subject = { program: options.qemu, version, bundle, limits };
  const proof = await findCpu(subject, { ...options, worked }, signal);
  await mkdir(options.dataDir, { recursive: true, mode: 0o700 });
  await replaceFile(file, JSON.stringify({ key, host, ...proof } satisfies StoredProof), { mode: 0o600 });
  return proof;
}

/** Reads a stored proof. One that is damaged, or from an earlier release, counts as none. */
function parseProof(text: string): StoredProof | undefined {
  try {
    const stored = JSON.parse(text) as Partial<StoredProof>;
    const whole = [stored.key, stored.host, stored.failure, stored.cpu].every((each) => typeof each === "string");
    return whole && Array.isArray(stored.failed) ? (stored as StoredProof) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Boots guests until one works: with the CPU of the settings, or else the one that worked before, or else the host's and
 * then less of it. All of them share the time.
 */
async function findCpu(
  subject: Omit<ProofSubject, "cpu">,
  { kvmCpu, kvmProofTimeoutMs, worked }: ProofOptions & { worked: Proof | undefined },
  signal: AbortSignal,
): Promise<Proof> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(kvmProofTimeoutMs)]);
  const attempt = (cpu: string) =>
    bootUnderKvm({ ...subject, cpu }, limit).catch((error: unknown) => {
      signal.throwIfAborted();
      if (error instanceof TooLate) return tooLate(kvmProofTimeoutMs);
      throw error;
    });
  if (kvmCpu !== AUTO) return { cpu: kvmCpu, failure: await attempt(kvmCpu), failed: [] };
  if (worked !== undefined && (await attempt(worked.cpu)) === "") return worked;
  const failed: FailedCpu[] = [];
  for (let cpu = nextCpu(failed); cpu !== undefined && !limit.aborted; cpu = nextCpu(failed)) {
    const failure = await attempt(cpu);
    if (failure === "") return { cpu, failure, failed };
    failed.push({ cpu, failure });
  }
  return { cpu: HOST_CPU, failure: failureText(failed) || tooLate(kvmProofTimeoutMs), failed };
}

function tooLate(limitMs: number): string {
  return `a guest did not boot within ${limitMs / 1000} s (on a slow host, set HIBERNAUT_KVM_PROOF_TIMEOUT to more)`;
}

/** Says for each CPU that was tried why it does not work. */
function failureText(failed: readonly FailedCpu[]): string {
  const [first] = failed;
  if (first === undefined || failed.length === 1) return first?.failure ?? "";
  return failed.map(({ cpu, failure }) => `with the CPU ${cpu}: ${failure}`).join("; ");
}
