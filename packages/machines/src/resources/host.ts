/** What the host has, and what of it is taken. */
import { statfs } from "node:fs/promises";
import { availableParallelism, loadavg, totalmem, uptime } from "node:os";
import { HostMemory } from "../admission/host-memory.ts";
import type { MachineDependencies } from "../dependencies.ts";
import type { WarmKeeper } from "../warm/keeper.ts";

/** Sizes in bytes. */
interface HostUse {
  /** `available` is what programs can still get, in the control group of the platform; null if the kernel does not say. */
  memory: { total: number; available: number | null };
  /** The file system of the data directory. `free` is what the platform's user can get. */
  disk: { total: number; free: number };
  /** The paused VMMs of suspended machines: what they may take, and take. */
  warm: { budget: number; used: number; machines: number };
  cpus: { count: number; load: [number, number, number] };
  /** Seconds since the host started. */
  uptimeS: number;
}

type HostDependencies = Pick<MachineDependencies, "files" | "hostMemory">;

/** Looks at the host. */
export class Host {
  readonly #memory: Pick<HostMemory, "available">;
  readonly #folder: string;
  readonly #warm: Pick<WarmKeeper, "kept" | "budgetBytes">;

  constructor({ files, hostMemory }: HostDependencies, warm: Pick<WarmKeeper, "kept" | "budgetBytes">) {
    this.#memory = hostMemory ?? new HostMemory();
    this.#folder = files.machineRoot;
    this.#warm = warm;
  }

  /** Returns what is taken at the moment. */
  async use(): Promise<HostUse> {
    const { blocks, bavail, bsize } = await statfs(this.#folder);
    const { kept, budgetBytes } = this.#warm;
    const [one = 0, five = 0, fifteen = 0] = loadavg();
    return {
      memory: { total: totalmem(), available: this.#memory.available() ?? null },
      disk: { total: blocks * bsize, free: bavail * bsize },
      warm: { budget: budgetBytes, used: kept.reduce((sum, { bytes }) => sum + bytes, 0), machines: kept.length },
      cpus: { count: availableParallelism(), load: [one, five, fifteen] },
      uptimeS: Math.floor(uptime()),
    };
  }
}
