/** How long QEMU may take. Each is a bound for a QEMU that hangs, and many times what a healthy one needs. Pure. */
import type { Settings } from "@hibernaut/settings";

/** All in milliseconds. */
export interface QemuLimits {
  /** For the answer to a command of QMP, which takes milliseconds. */
  commandMs: number;
  /** From its start until it listens: 50 ms, and much later on a loaded host. */
  startMs: number;
  /** For a QEMU that is adopted to answer. */
  adoptMs: number;
  /** For what a QEMU that was started for this alone says about the host's CPU: 100 ms, and much later on a loaded host. */
  hostCpuMs: number;
  /** For `--version`. The first call after a boot of the host reads QEMU and its libraries from the disk. */
  versionMs: number;
  /** For the end of a state stream, which takes a few milliseconds. A QEMU that needs longer has other problems. */
  streamEndMs: number;
  /** For the space of a guest's memory: milliseconds, and longer on file systems that write zeros instead. */
  reserveMs: number;
  /** A killed QEMU closes its sockets first, and is gone once the kernel has freed its memory. */
  dyingMs: number;
}

/** The settings that they follow from. */
export type LimitSettings = Pick<Settings, "qemuTimeoutMs" | "slowFactor">;

export function qemuLimits({ qemuTimeoutMs, slowFactor }: LimitSettings): QemuLimits {
  return {
    commandMs: qemuTimeoutMs,
    startMs: 30_000 * slowFactor,
    adoptMs: 10_000 * slowFactor,
    hostCpuMs: 30_000 * slowFactor,
    versionMs: 10_000 * slowFactor,
    streamEndMs: 5_000 * slowFactor,
    reserveMs: 30_000 * slowFactor,
    dyingMs: 2_000 * slowFactor,
  };
}

/** With the settings' defaults. */
export const USUAL_LIMITS: QemuLimits = qemuLimits({ qemuTimeoutMs: 10_000, slowFactor: 1 });
