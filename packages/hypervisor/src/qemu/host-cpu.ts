/** What guests under KVM see of the host's CPU: asked of QEMU, because it is QEMU that decides. */
import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { HOST_CPU, modelOf } from "./cpu-choice.ts";
import type { HostCpu } from "./hardware.ts";
import { type QemuLimits, USUAL_LIMITS } from "./limits.ts";
import { killProcess, spawnDetached } from "./process.ts";
import { Qmp } from "./qmp.ts";

/** QEMU's properties of a CPU that are numbers or texts and that a guest can see. The others describe its place in a machine. */
const VISIBLE = ["vendor", "family", "model", "stepping", "level", "xlevel"] as const;

/** What is asked, and how long QEMU may take to answer. */
interface HostCpuOptions {
  /** In the form of QEMU's `-cpu`. Default: the host's. */
  cpu?: string;
  limits?: QemuLimits;
}

/**
 * Asks a QEMU that is starting for this alone. Rejects when it cannot be started, and with `unavailable` when it does not
 * answer in time.
 */
export async function readHostCpu(
  program: string,
  accelerator: "kvm" | "tcg" = "kvm",
  { cpu = accelerator === "kvm" ? HOST_CPU : "max", limits = USUAL_LIMITS }: HostCpuOptions = {},
): Promise<HostCpu> {
  const folder = await mkdtemp(join(tmpdir(), "hibernaut-cpu-"));
  const socket = join(folder, "qmp.sock");
  const none = ["-machine", "none", "-accel", accelerator, "-nodefaults", "-no-user-config", "-display", "none", "-S"];
  try {
    const args = [...none, "-qmp", `unix:${socket},server=on,wait=off`];
    const { ref } = await spawnDetached(program, args, { machineId: "", log: join(folder, "log") });
    try {
      const limit = AbortSignal.timeout(limits.hostCpuMs);
      const qmp = await Qmp.connect(socket, limit, limits).catch((error: unknown) => {
        throw limit.aborted ? tooLate(limits.hostCpuMs) : error;
      });
      const answer = await askHostCpu(qmp, cpu);
      qmp.close();
      return answer;
    } finally {
      await killProcess(ref);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function tooLate(deadlineMs: number): HibernautError {
  return new HibernautError(
    "unavailable",
    `QEMU was asked about this host's CPU, on which snapshots depend, and did not answer within ${deadlineMs / 1000} s. Start the platform again when the host is less busy. If that does not help, run \`hibernaut doctor\`.`,
  );
}

/** Asks a QEMU that is running, which may be another build than the one that is installed now. */
export async function askHostCpu(qmp: Qmp, cpu = HOST_CPU): Promise<HostCpu> {
  const model = modelOf(cpu);
  const features = await expand(qmp, model);
  const name = cpus()[0]?.model.trim() ?? "unknown";
  if (model.name === HOST_CPU || model.name === "max") return { name, cpu, features };
  // Of any other model, guests get what this host has of it.
  const has = new Set(await expand(qmp, modelOf(HOST_CPU)));
  return { name, cpu, features: features.filter((feature) => feature.includes("=") || has.has(feature)) };
}

async function expand(qmp: Qmp, model: ReturnType<typeof modelOf>): Promise<string[]> {
  const answer = await qmp.execute<{ model: { props: Record<string, unknown> } }>("query-cpu-model-expansion", {
    type: "full",
    model,
  });
  return featuresOf(answer.model.props);
}

/** What is on, and the numbers that tell CPUs apart, such as `avx2` and `family=25`. Sorted. */
export function featuresOf(properties: Readonly<Record<string, unknown>>): string[] {
  // QEMU lists some properties under two names, which differ in `_` and `-`.
  const on = Object.keys(properties).filter((name) => properties[name] === true && !name.includes("_"));
  const seen = VISIBLE.filter((name) => properties[name] !== undefined);
  return [...on, ...seen.map((name) => `${name}=${String(properties[name])}`)].toSorted();
}
