/** Boots the guest bundle under KVM: the only proof that it works. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { GuestBundle } from "@hibernaut/domain/guest-bundle";
import { GuestAgent } from "@hibernaut/guest";
import { messageOf } from "@hibernaut/lib/text";
import type { Vmm } from "../contract.ts";
import { QemuHypervisor } from "./index.ts";
import type { QemuLimits } from "./limits.ts";

/** The smallest memory in which the kernel boots. */
const MEMORY_MB = 128;

export interface ProofSubject {
  /** Path or name of the QEMU program, and what it says about itself. */
  program: string;
  version: string;
  bundle: GuestBundle;
  /** In the form of QEMU's `-cpu`. */
  cpu: string;
  limits: QemuLimits;
}

/** Thrown when a guest did not boot before the limit; nothing is known about why. */
export class TooLate extends Error {
  override name = "TooLate";
}

/**
 * Returns why a guest does not boot under KVM, in QEMU's own words where it has some, as soon as QEMU says so; "" when
 * one boots. Rejects with {@link TooLate} when `limit` is aborted first.
 */
export async function bootUnderKvm(subject: ProofSubject, limit: AbortSignal): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "hibernaut-kvm-"));
  const progress: { vmm?: Vmm } = {};
  try {
    await boot(subject, folder, progress, limit);
    return "";
  } catch (error) {
    await progress.vmm?.kill();
    const failure = progress.vmm?.failure ?? (await complaint(join(folder, "console.log")));
    if (failure === undefined && limit.aborted) throw new TooLate(messageOf(error));
    return failure ?? messageOf(error);
  } finally {
    await progress.vmm?.kill();
    await rm(folder, { recursive: true, force: true });
  }
}

async function boot(
  { program, version, bundle, cpu, limits }: ProofSubject,
  folder: string,
  progress: { vmm?: Vmm },
  limit: AbortSignal,
): Promise<void> {
  const machineId = "0".repeat(14);
  const runDir = join(folder, machineId);
  const host = { name: "", cpu, features: [] };
  const roots = { runRoot: folder, machineRoot: folder };
  const hypervisor = new QemuHypervisor({ program, version, accelerator: "kvm", host, limits, ...roots });
  await mkdir(runDir);
  const [image, layer] = [join(folder, "image"), join(folder, "layer")];
  // There is nothing to mount, but the agent still says hello, which is the proof.
  await Promise.all([writeFile(image, Buffer.alloc(512)), writeFile(layer, Buffer.alloc(512))]);
  const files = { image, layer, memory: join(folder, "memory"), runDir, consoleLog: join(folder, "console.log") };
  const network = {
    mode: "user" as const,
    mac: "02:00:00:00:00:01",
    guest: { address: "", gateway: "", dns: "", hosts: [] },
    address: "",
    ports: [],
  };
  const spec = { machineId, cpus: 1, memoryMb: MEMORY_MB, bundle, ...files, volumes: [], network };
  progress.vmm = await hypervisor.boot(spec, limit);
  const agent = new GuestAgent(await progress.vmm.openChannel(limit));
  try {
    await agent.hello(limit);
  } finally {
    agent.close();
  }
}

/** What QEMU said before it ended. Under a CPU that is not the host's, it warns of what the host does not have. */
async function complaint(log: string): Promise<string | undefined> {
  const lines = (await readFile(log, "utf8").catch(() => "")).split("\n").map((line) => line.trim());
  const grave = lines.find((line) => /error|assert/i.test(line));
  return grave ?? lines.find((line) => /^\S*qemu\S*: /.test(line) && !/: warning: /.test(line));
}
