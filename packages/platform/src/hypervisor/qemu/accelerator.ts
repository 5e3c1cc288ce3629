/**
 * Finds out which accelerator really works. `/dev/kvm` may open and create a virtual machine, yet never run a guest, so
 * the platform trusts KVM only after the guest bundle has booted under it.
 */

import { constants } from "node:fs";
import { access, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { HibernautError } from "../../domain/errors.ts";
import { GuestAgent } from "../../guest/agent.ts";
import { hostBootId } from "../../lib/boot-id.ts";
import { run } from "../../lib/exec.ts";
import { messageOf } from "../../lib/text.ts";
import type { GuestBundle } from "../../domain/guest-bundle.ts";
import { QemuHypervisor } from "./index.ts";

/** Under KVM the agent says hello within a second. Waiting longer for a guest that hangs is not worthwhile. */
const PROOF_DEADLINE_MS = 8_000;
const VERSION_TIMEOUT_MS = 10_000;
const OLDEST_QEMU = [7, 2] as const;

/** The accelerator to use, and why. */
export interface Verdict {
  accelerator: "kvm" | "tcg";
  /** For people. */
  reason: string;
}

interface ProofOptions {
  accelerator: "auto" | "kvm" | "tcg";
  /** Path or name of the QEMU program. */
  qemu: string;
  /** Where the verdict is stored. It is valid for one boot of the host, one QEMU and one guest bundle. */
  dataDir: string;
}

/**
 * Returns QEMU's exact version, e.g. `7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)`. Rejects with `failed_precondition` when
 * QEMU is missing or too old.
 */
export async function qemuVersion(program: string): Promise<string> {
  const { stdout } = await run(program, ["--version"], { timeoutMs: VERSION_TIMEOUT_MS }).catch((error: unknown) => {
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
  if (options.accelerator === "tcg")
    return { accelerator: "tcg", reason: "software emulation, as set by HIBERNAUT_ACCELERATOR" };
  const failure = (await missingKvm()) ?? (await cachedProof(options, bundle, signal));
  if (failure === "") return { accelerator: "kvm", reason: "KVM: the guest bundle boots under it" };
  if (options.accelerator === "auto")
    return { accelerator: "tcg", reason: `software emulation, because KVM does not work here: ${failure}` };
  throw new HibernautError(
    "failed_precondition",
    `HIBERNAUT_ACCELERATOR is kvm, but KVM does not work here: ${failure}. Repair KVM, or set HIBERNAUT_ACCELERATOR to auto.`,
  );
}

async function missingKvm(): Promise<string | undefined> {
  return access("/dev/kvm", constants.R_OK | constants.W_OK).then(
    () => undefined,
    (error: NodeJS.ErrnoException) =>
      error.code === "ENOENT" ? "there is no /dev/kvm" : "this user may not open /dev/kvm",
  );
}

/** Returns why KVM does not work, or "" when it does. */
async function cachedProof(options: ProofOptions, bundle: GuestBundle, signal: AbortSignal): Promise<string> {
  const version = await qemuVersion(options.qemu);
  const key = [await hostBootId(), version, bundle.version].join(" ");
  const file = join(options.dataDir, "kvm-verdict.json");
  const cached = parseVerdict(await readFile(file, "utf8").catch(() => ""));
  if (cached.key === key && cached.failure !== undefined) return cached.failure;
  const failure = await bootUnderKvm(options.qemu, version, bundle, signal);
  await mkdir(options.dataDir, { recursive: true, mode: 0o700 });
  await writeFile(file, JSON.stringify({ key, failure }), { mode: 0o600 });
  return failure;
}

/** Reads a stored verdict. One that cannot be parsed counts as none: the platform may have been killed while writing. */
function parseVerdict(text: string): { key?: string; failure?: string } {
  try {
    return JSON.parse(text) as { key?: string; failure?: string };
  } catch {
    return {};
  }
}

async function bootUnderKvm(
  program: string,
  version: string,
  bundle: GuestBundle,
  signal: AbortSignal,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "hibernaut-kvm-"));
  const machineId = "0".repeat(14);
  const runDir = join(folder, machineId);
  const limit = AbortSignal.any([signal, AbortSignal.timeout(PROOF_DEADLINE_MS)]);
  const hypervisor = new QemuHypervisor({ program, version, accelerator: "kvm", runRoot: folder, machineRoot: folder });
  try {
    await mkdir(runDir);
    const [image, layer] = [join(folder, "image"), join(folder, "layer")];
    // There is nothing to mount, but the agent still says hello, which is the proof.
    await Promise.all([writeFile(image, Buffer.alloc(512)), writeFile(layer, Buffer.alloc(512))]);
    const network = {
      mode: "user",
      mac: "02:00:00:00:00:01",
      guest: { address: "", gateway: "", dns: "", hosts: [] },
      address: "",
      ports: [],
    } as const;
    const files = { image, layer, memory: join(folder, "memory"), runDir, consoleLog: join(folder, "console.log") };
    const vmm = await hypervisor.boot(
      { machineId, cpus: 1, memoryMb: 128, bundle, ...files, volumes: [], network: { ...network, ports: [] } },
      limit,
    );
    try {
      const agent = new GuestAgent(await vmm.openChannel(limit));
      await agent.hello(limit);
      agent.close();
      return "";
    } finally {
      await vmm.kill();
    }
  } catch (error) {
    signal.throwIfAborted();
    if (limit.aborted) return `a guest did not boot within ${PROOF_DEADLINE_MS / 1000} s`;
    const lines = (await readFile(join(folder, "console.log"), "utf8").catch(() => "")).trim().split("\n");
    return lines.find((line) => /error|assert/i.test(line))?.trim() ?? messageOf(error);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
