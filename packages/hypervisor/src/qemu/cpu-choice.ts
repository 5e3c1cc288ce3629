/**
 * Which CPU guests see under KVM. It should be the host's. Where the host's KVM refuses a part of that, as KVM inside
 * another virtual machine may, the part is left out. Pure.
 */

/** The CPU to begin with. */
export const HOST_CPU = "host";

/**
 * What the oldest servers in use have (x86-64-v2), for a KVM that runs no guest with the host's CPU. Programs find out
 * what their CPU has, except those that were compiled for a newer one.
 */
export const PLAIN_CPU = "kvm64,+cx16,+lahf-lm,+popcnt,+ssse3,+sse4.1,+sse4.2";

/** Each try is a boot of a second or less, and no host is known that needs more than two. */
const MOST_TRIES = 6;

/** Model-specific registers, and which part of the CPU to leave out so that QEMU does not touch them. */
const PARTS: readonly { from: number; to?: number; without: string }[] = [
  { from: 0x10a, without: "-arch-capabilities" },
  { from: 0xcf, without: "-core-capability" },
  { from: 0x345, without: "pmu=off" },
  { from: 0x186, to: 0x18d, without: "pmu=off" },
  { from: 0x38d, to: 0x390, without: "pmu=off" },
  { from: 0x480, to: 0x491, without: "-vmx" },
  { from: 0x570, to: 0x58f, without: "-intel-pt" },
  { from: 0x6e0, without: "-tsc-deadline" },
  { from: 0xd90, without: "-mpx" },
  { from: 0xda0, without: "-xsaves" },
  { from: 0xc0000104, without: "-tsc-scale" },
];

/** A CPU under which a guest did not boot, and QEMU's reason. */
export interface FailedCpu {
  cpu: string;
  failure: string;
}

/** Returns the CPU to try after those that failed, the first of which was the host's. Undefined when none is left. */
export function nextCpu(failed: readonly FailedCpu[]): string | undefined {
  const last = failed.at(-1);
  if (last === undefined) return HOST_CPU;
  if (last.cpu === PLAIN_CPU) return undefined;
  const part = failed.length < MOST_TRIES - 1 ? refusedPart(last.failure) : undefined;
  // A part that is left out already was not the reason.
  return part === undefined || last.cpu.split(",").includes(part) ? PLAIN_CPU : `${last.cpu},${part}`;
}

/** The part of the CPU that KVM refused, as QEMU tells it: `error: failed to set MSR 0x10a to 0x0`. */
function refusedPart(failure: string): string | undefined {
  const register = Number(/failed to (?:set|get) MSR (0x[0-9a-f]+)/i.exec(failure)?.[1] ?? Number.NaN);
  return PARTS.find(({ from, to = from }) => register >= from && register <= to)?.without;
}

/** What QMP takes for a model in QEMU's form for `-cpu`, such as `host,-vmx,pmu=off`. */
export function modelOf(cpu: string): { name: string; props: Record<string, boolean | number | string> } {
  const [name = "", ...parts] = cpu.split(",");
  // `check` and `enforce` are about QEMU's start, not about the model.
  const own = parts.filter((part) => part !== "check" && part !== "enforce");
  return { name, props: Object.fromEntries(own.map(propertyOf)) };
}

function propertyOf(part: string): [string, boolean | number | string] {
  if (part.startsWith("+")) return [part.slice(1), true];
  if (part.startsWith("-")) return [part.slice(1), false];
  const [name = "", value = "on"] = part.split("=");
  if (value === "on" || value === "off") return [name, value === "on"];
  return [name, /^(0x[0-9a-f]+|\d+)$/i.test(value) ? Number(value) : value];
}
