/** What guests under KVM see of the host's CPU: asked of QEMU, because it is QEMU that decides. */
import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import type { HostCpu } from "./hardware.ts";
import { killProcess, spawnDetached } from "./process.ts";
import { Qmp } from "./qmp.ts";

/** QEMU answers within 100 ms, and later on a loaded host. */
const ANSWER_DEADLINE_MS = 10_000;

/** QEMU's properties of a CPU that are numbers or texts and that a guest can see. The others describe its place in a machine. */
const VISIBLE = ["vendor", "family", "model", "stepping", "level", "xlevel"] as const;

/** Asks a QEMU that is starting for this alone. Rejects when it cannot be started, or does not answer. */
export async function readHostCpu(program: string, accelerator: "kvm" | "tcg" = "kvm"): Promise<HostCpu> {
  const folder = await mkdtemp(join(tmpdir(), "hibernaut-cpu-"));
  const socket = join(folder, "qmp.sock");
  const none = ["-machine", "none", "-accel", accelerator, "-nodefaults", "-no-user-config", "-display", "none", "-S"];
  try {
    const args = [...none, "-qmp", `unix:${socket},server=on,wait=off`];
    const { ref } = await spawnDetached(program, args, { machineId: "", log: join(folder, "log") });
    try {
      const qmp = await Qmp.connect(socket, AbortSignal.timeout(ANSWER_DEADLINE_MS));
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
