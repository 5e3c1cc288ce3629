/** Finds out by booting guests whether KVM works, and with which CPU. The outcome is stored in the data directory. */
import { mkdir, readFile } from "node:fs/promises";
import { cpus, release } from "node:os";
import { join } from "node:path";
import { ifAbsent } from "@hibernaut/lib/absence";
import { hostBootId } from "@hibernaut/lib/boot-id";
import { replaceFile } from "@hibernaut/lib/durable";
import type { Settings } from "@hibernaut/settings";
import { type FailedCpu, HOST_CPU, nextCpu } from "./cpu-choice.ts";
import type { LimitSettings } from "./limits.ts";
import { bootUnderKvm, type ProofSubject, TooLate } from "./proof.ts";

/** `HIBERNAUT_KVM_CPU`: the platform chooses. */
const AUTO = "auto";

export type ProofSettings = LimitSettings & Pick<Settings, "kvmCpu" | "kvmProofTimeoutMs" | "dataDir">;
type Subject = Omit<ProofSubject, "cpu">;

/** What is known about KVM on this host. */
export interface Proof {
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

/**
 * Finds the CPU that guests boot with under KVM, or why none does, and remembers it: for one boot of the host, one QEMU,
 * one guest bundle and one setting.
 */
export async function findCpu(subject: Subject, settings: ProofSettings, signal: AbortSignal): Promise<Proof> {
  const { version, bundle } = subject;
  const key = [await hostBootId(), version, bundle.version, settings.kvmCpu].join(" ");
  const host = [cpus()[0]?.model.trim() ?? "unknown", release(), version].join(" ");
  const file = join(settings.dataDir, "kvm-verdict.json");
  const stored = parseProof(await readFile(file, "utf8").catch(ifAbsent("")));
  if (stored?.key === key) return stored;
  const worked = stored?.host === host && stored.failure === "" ? stored : undefined;
  const proof = await tryAll(subject, { ...settings, worked }, signal);
  await mkdir(settings.dataDir, { recursive: true, mode: 0o700 });
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
async function tryAll(
  subject: Subject,
  { kvmCpu, kvmProofTimeoutMs, worked }: ProofSettings & { worked: Proof | undefined },
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
  return `a guest did not boot within ${limitMs / 1000} s (if KVM is only slow here, set HIBERNAUT_SLOW_FACTOR, say to 20; HIBERNAUT_KVM_PROOF_TIMEOUT changes this limit alone)`;
}

/** Says for each CPU that was tried why it does not work. */
function failureText(failed: readonly FailedCpu[]): string {
  const [first] = failed;
  if (first === undefined || failed.length === 1) return first?.failure ?? "";
  return failed.map(({ cpu, failure }) => `with the CPU ${cpu}: ${failure}`).join("; ");
}
