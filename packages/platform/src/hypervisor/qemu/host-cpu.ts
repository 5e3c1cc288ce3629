/** What guests under KVM see of the host's CPU: asked of QEMU, because it is QEMU that decides. */
import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { HibernautError } from "../../domain/errors.ts";
import type { HostCpu } from "./hardware.ts";
import { killProcess, spawnDetached } from "./process.ts";
import { Qmp } from "./qmp.ts";

/** QEMU answers within 100 ms, and much later on a loaded host. This is the bound for a QEMU that hangs. */
const ANSWER_DEADLINE_MS = 30_000;

/** QEMU's properties of a CPU that are numbers or texts and that a guest can see. The others describe its place in a machine. */
const VISIBLE = ["vendor", "family", "model", "stepping", "level", "xlevel"] as const;

/**
 * Asks a QEMU that is starting for this alone. Rejects when it cannot be started, and with `unavailable` when it does not
 * answer within `deadlineMs` (milliseconds, 30 s by default).
 */
export async function readHostCpu(
  program: string,
  accelerator: "kvm" | "tcg" = "kvm",
  { deadlineMs = ANSWER_DEADLINE_MS }: { deadlineMs?: number } = {},
): Promise<HostCpu> {
  const folder = await mkdtemp(join(tmpdir(), "hibernaut-cpu-"));
  const socket = join(folder, "qmp.sock");
  const none = ["-machine", "none", "-accel", accelerator, "-nodefaults", "-no-user-config", "-display", "none", "-S"];
  try {
    const args = [...none, "-qmp", `unix:${socket},server=on,wait=off`];
    const { ref } = await spawnDetached(program, args, { machineId: "", log: join(folder, "log") });
    try {
      const limit = AbortSignal.timeout(deadlineMs);
      const qmp = await Qmp.connect(socket, limit).catch((error: unknown) => {
        throw limit.aborted ? tooLate(deadlineMs) : error;
      });
      const cpu = await askHostCpu(qmp, accelerator);
      qmp.close();
      return cpu;
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
export async function askHostCpu(qmp: Qmp, accelerator: "kvm" | "tcg" = "kvm"): Promise<HostCpu> {
  const name = accelerator === "kvm" ? "host" : "max";
  const { model } = await qmp.execute<{ model: { props: Record<string, unknown> } }>("query-cpu-model-expansion", {
    type: "full",
    model: { name },
  });
  return { name: cpus()[0]?.model.trim() ?? "unknown", features: featuresOf(model.props) };
}

/** What is on, and the numbers that tell CPUs apart, such as `avx2` and `family=25`. Sorted. */
export function featuresOf(properties: Readonly<Record<string, unknown>>): string[] {
  // QEMU lists some properties under two names, which differ in `_` and `-`.
  const on = Object.keys(properties).filter((name) => properties[name] === true && !name.includes("_"));
  const seen = VISIBLE.filter((name) => properties[name] !== undefined);
  return [...on, ...seen.map((name) => `${name}=${String(properties[name])}`)].toSorted();
}
