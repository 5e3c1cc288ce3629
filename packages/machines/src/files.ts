/** Locates and creates the files of a machine. */
import { mkdir, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { besideMemory } from "@hibernaut/hypervisor";
import { ifAbsent, isThere } from "@hibernaut/lib/absence";
import { allocatedBytes, copySparse, createSparse, formatExt4, lackOfRoom } from "@hibernaut/lib/disk-files";
import { flush } from "@hibernaut/lib/durable";
import { failureReason } from "@hibernaut/lib/exec";
import { SeedFiles } from "./births/seed-files.ts";

/** Time limit for creating an empty file system, which takes milliseconds unless the disk is full or the tool broken. */
const TOOL_TIMEOUT_MS = 30_000;
/** A small journal repairs the file system after a lost guest, and costs little to create and copy. */
const JOURNAL_MB = 4;
interface MachinePaths {
  folder: string;
  /** The guest's memory while it runs. */
  memory: string;
  /** The writable layer. */
  layer: string;
  console: string;
  /** The directory of its log. */
  logs: string;
  /** The directory of its VMM's sockets. */
  run: string;
}

/** The files of all machines in one data directory. */
export class MachineFiles {
  readonly machineRoot: string;
  readonly runRoot: string;
  /** Where the files of machines are kept for a while that another host owns now. */
  readonly quarantineRoot: string;
  /** What machines are born from. */
  readonly seeds: SeedFiles;
  readonly #layerSizeMb: number;

  constructor(dataDir: string, layerSizeMb: number) {
    this.machineRoot = join(dataDir, "machines");
    this.runRoot = join(dataDir, "run");
    this.quarantineRoot = join(dataDir, "quarantine");
    this.seeds = new SeedFiles(this.machineRoot);
    this.#layerSizeMb = layerSizeMb;
  }

  paths(machineId: string): MachinePaths {
    const folder = join(this.machineRoot, machineId);
    return {
      folder,
      memory: join(folder, "memory"),
      layer: join(folder, "layer.ext4"),
      console: join(folder, "console.log"),
      logs: join(folder, "logs"),
      run: join(this.runRoot, machineId),
    };
  }

  async prepare(machineId: string): Promise<void> {
    const { logs, run: runDir } = this.paths(machineId);
    await mkdir(logs, { recursive: true, mode: 0o700 });
    await mkdir(runDir, { recursive: true, mode: 0o700 });
  }

  /**
   * Creates an empty writable layer, replacing any old one. The file system is created once for each size and copied. The
   * machine's swap comes on top of the size.
   */
  async freshLayer(machineId: string, { swapMb = 0 } = {}): Promise<void> {
    const sizeMb = this.#layerSizeMb + swapMb;
    const template = join(dirname(this.machineRoot), `layer-${sizeMb}.ext4`);
    await this.#ensureTemplate(template, sizeMb);
    const { layer } = this.paths(machineId);
    await copySparse(template, `${layer}.new`, { timeoutMs: TOOL_TIMEOUT_MS });
    await flush(`${layer}.new`);
    await rename(`${layer}.new`, layer);
  }

  hasLayer(machineId: string): Promise<boolean> {
    return isThere(this.paths(machineId).layer);
  }

  /** Flushes the writable layer: what is swapped out there is as good as memory. */
  flushLayer(machineId: string): Promise<void> {
    return flush(this.paths(machineId).layer);
  }

  /** What the machine's writable layer takes up on the disk, in bytes; 0 without one. */
  async layerBytes(machineId: string): Promise<number> {
    return allocatedBytes(await stat(this.paths(machineId).layer).catch(ifAbsent({ blocks: 0 })));
  }

  /**
   * Fails with `unavailable` unless the disk has room for the machine's whole memory, including its swap: a guest whose
   * memory file cannot grow any more is killed by the kernel, and that loses more than a start.
   */
  async requireRoom(machineId: string, memoryMb: number): Promise<void> {
    const lack = await lackOfRoom(this.machineRoot, memoryMb * 1024 * 1024);
    if (lack === undefined) return;
    throw new HibernautError(
      "unavailable",
      `The disk of ${this.machineRoot} has ${lack.free} MB free and machine ${machineId} needs ${lack.needed} MB. Free some space and start it again.`,
    );
  }

  /** Deletes the memory of a guest that has ended. */
  async forgetMemory(machineId: string): Promise<void> {
    await rm(this.paths(machineId).memory, { force: true });
    await this.forgetBeside(machineId, { hasVmm: false });
  }

  /**
   * Deletes what an earlier platform left next to the memory: what it was copying, and, if the VMM has ended, what that had
   * mapped.
   */
  async forgetBeside(machineId: string, { hasVmm }: { hasVmm: boolean }): Promise<void> {
    const { own, lent } = besideMemory(this.paths(machineId).memory);
    for (const path of hasVmm ? [own] : [own, lent]) await rm(path, { force: true });
  }

  async remove(machineId: string): Promise<void> {
    const { folder, run: runDir } = this.paths(machineId);
    await rm(folder, { recursive: true, force: true });
    await rm(runDir, { recursive: true, force: true });
  }

  /** Moves all that a machine has to quarantine: to a directory named by the epoch up to which it was this host's. */
  async quarantine(machineId: string, epoch: number): Promise<void> {
    const { folder, run: runDir } = this.paths(machineId);
    await rm(runDir, { recursive: true, force: true });
    await mkdir(this.quarantineRoot, { recursive: true, mode: 0o700 });
    await this.#toQuarantine(folder, `${machineId}-${epoch}`);
  }

  /** Moves a directory that holds files of a machine, and is not its own, to quarantine. */
  async quarantineFolder(folder: string, machineId: string, epoch: number): Promise<void> {
    await mkdir(this.quarantineRoot, { recursive: true, mode: 0o700 });
    await this.#toQuarantine(folder, `${machineId}-${epoch}`);
  }

  /** What is there already is never replaced: it may be the only copy, as when this is repeated after a crash. */
  async #toQuarantine(folder: string, name: string): Promise<void> {
    if (!(await isThere(folder))) return;
    let target = join(this.quarantineRoot, name);
    for (let more = 2; await isThere(target); more += 1) target = join(this.quarantineRoot, `${name}-${more}`);
    await rename(folder, target);
    // Its age counts from now on.
    const now = new Date();
    await utimes(target, now, now).catch(ifAbsent(undefined));
  }

  /** Deletes what has been in quarantine for at least this long. */
  async expireQuarantine(olderThanMs: number): Promise<void> {
    const names = await readdir(this.quarantineRoot).catch(ifAbsent<string[]>([]));
    for (const name of names) {
      const path = join(this.quarantineRoot, name);
      const found = await stat(path).catch(ifAbsent(undefined));
      if (found !== undefined && Date.now() - found.mtimeMs >= olderThanMs)
        await rm(path, { recursive: true, force: true });
    }
  }

  async #ensureTemplate(template: string, sizeMb: number): Promise<void> {
    if (await isThere(template)) return;
    const draft = `${template}.${process.pid}.${Math.random().toString(16).slice(2)}`;
    try {
      await createSparse(draft, sizeMb * 1024 * 1024);
      await formatExt4(draft, { journalMb: JOURNAL_MB, timeoutMs: TOOL_TIMEOUT_MS });
      await rename(draft, template);
    } catch (error) {
      await rm(draft, { force: true });
      throw new HibernautError(
        "unavailable",
        `The writable layer cannot be made: ${failureReason(error)}. Run \`hibernaut doctor\`.`,
        {},
        { cause: error },
      );
    }
  }
}
