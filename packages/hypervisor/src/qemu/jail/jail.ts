/** The jail of one machine's QEMU: what it sees, who it is, and what it may take. docs/security.md says what that is for. */
import { constants, mkdir, open, realpath } from "node:fs/promises";
import type { Confined, ConfinedTask } from "@hibernaut/domain/confined";
import { READ_ONLY_LIBRARY } from "@hibernaut/settings/places";
import type { VmmSpec } from "../../contract.ts";
import { devicesFile } from "../arguments.ts";
import { type JailPlan, launcherArguments } from "./arguments.ts";
import { hostPlaces } from "./host-places.ts";
import type { JailSettings } from "./jail-settings.ts";
import { cgroupFiles, MACHINE_NICE, resourceLimits, TASK_NICE, taskCgroupFiles, taskLimits } from "./limits.ts";
import { give, largest, share } from "./owning.ts";
import { flawInBorrowing } from "./try-borrowing.ts";
import { uidOf } from "./users.ts";

/** A console's log may grow beyond the files of a small machine. */
const CONSOLE_BYTES = 64 * 1024 * 1024;

/**
 * An earlier QEMU of the machine may have left anything there, which took the disk's space. The directory is its user's, and a
 * link there may lead anywhere.
 */
const ANEW = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;

/** The device that QEMU needs for KVM. */
export const KVM = "/dev/kvm";

/** How to start QEMU in a jail: the launcher, its arguments up to those of QEMU, and what to clean up afterwards. */
export interface Entry {
  program: string;
  args: string[];
  cgroup?: string | undefined;
}

/** Makes jails for machines. */
export class Jail {
  readonly #settings: JailSettings;
  #flawInBorrowing: Promise<string | undefined> | undefined;

  constructor(settings: JailSettings) {
    this.#settings = settings;
  }

  /**
   * Why guests in jails cannot begin with a memory file that they may only read, for people. Undefined when they can. Tried
   * until it is known; that takes about as long as a start of QEMU.
   */
  flawInBorrowing(): Promise<string | undefined> {
    this.#flawInBorrowing ??= flawInBorrowing(this.#settings).then(({ flaw, unsure }) => {
      if (unsure === true) this.#flawInBorrowing = undefined;
      return flaw;
    });
    return this.#flawInBorrowing;
  }

  /** Gets a machine's files and its control group ready. Rejects with the file system's error. */
  async prepare(spec: VmmSpec, sockets: { qmp: string; agent: string }): Promise<Entry> {
    const { launcher, program, host, firstUid, kvmGroup, cgroups } = this.#settings;
    const borrowed = spec.borrowed === true;
    const made = [spec.consoleLog, ...(borrowed ? [devicesFile(spec.runDir)] : [])];
    // A place in the jail must exist.
    await (await open(spec.consoleLog, "a", 0o600)).close();
    if (borrowed) await (await open(devicesFile(spec.runDir), ANEW, 0o600)).close();
    const own = [...made, ...(borrowed ? [] : [spec.memory]), spec.layer, ...spec.volumes.map(({ file }) => file)];
    const shared = [spec.image, spec.bundle.kernel, spec.bundle.initrd, ...(borrowed ? [spec.memory] : [])];
    const uid = firstUid === undefined ? undefined : uidOf(spec.network, firstUid);
    // At once: a request waits for this.
    const [largestBytes] = await Promise.all([
      largest(own),
      ...(uid === undefined ? [] : [give([...own, spec.runDir], uid), share(shared)]),
    ]);
    const fsize = Math.max(CONSOLE_BYTES, largestBytes);
    const cgroup = await cgroups?.make(spec.machineId, cgroupFiles(spec));
    const plan: JailPlan = {
      program,
      root: spec.runDir,
      ...(uid !== undefined && { uid }),
      groups: uid !== undefined && kvmGroup !== undefined ? [kvmGroup] : [],
      // A tap comes in as a descriptor; QEMU's own network is made of the host's sockets.
      ownNetwork: spec.network.mode === "tap",
      ...(cgroup !== undefined && { cgroup }),
      ...(borrowed && { preload: READ_ONLY_LIBRARY }),
      places: {
        ...host,
        read: [...host.read, spec.runDir, ...shared],
        write: own,
        devices: kvmGroup === undefined ? host.devices : [...host.devices, KVM],
      },
      listen: sockets,
      ...(spec.network.mode === "tap" && { tap: spec.network.device }),
      nice: MACHINE_NICE,
      limits: resourceLimits(fsize, { ownUser: uid !== undefined }),
    };
    return { program: launcher, args: launcherArguments(plan), cgroup };
  }

  /** How to start another program in a jail: without a network, as the first user, which no machine has. */
  async confine(task: ConfinedTask): Promise<Confined> {
    const { launcher, firstUid, cgroups } = this.#settings;
    const { name, folder, args, read, write, fileBytes } = task;
    const program = await realpath(task.program);
    const host = await hostPlaces(program);
    await mkdir(folder, { recursive: true });
    if (firstUid !== undefined) await give(write, firstUid);
    const cgroup = await cgroups?.make(name, taskCgroupFiles());
    const plan: JailPlan = {
      program,
      root: folder,
      ...(firstUid !== undefined && { uid: firstUid }),
      groups: [],
      ownNetwork: true,
      endWithParent: true,
      ...(cgroup !== undefined && { cgroup }),
      places: { ...host, read: [...host.read, ...read], write },
      nice: TASK_NICE,
      limits: taskLimits(fileBytes, { ownUser: firstUid !== undefined }),
    };
    return {
      program: launcher,
      // Without a status descriptor, the launcher says on standard error what is wrong.
      args: [...launcherArguments(plan).slice(2), ...args],
      end: async () => {
        await this.clean(cgroup);
        const self = process.getuid?.();
        if (firstUid !== undefined && self !== undefined) await give(write, self);
      },
    };
  }

  /** Whether each machine has a control group. */
  get hasGroups(): boolean {
    return this.#settings.cgroups !== undefined;
  }

  /** Returns the control group of a VMM that an earlier platform started. */
  async cgroupOf(pid: number): Promise<string | undefined> {
    return this.#settings.cgroups?.of(pid);
  }

  /** Removes the control group of a VMM that has ended. */
  async clean(cgroup: string | undefined): Promise<void> {
    if (cgroup !== undefined) await this.#settings.cgroups?.remove(cgroup);
  }

  /** Removes control groups that nothing is in. Guests keep running in theirs. */
  async close(): Promise<void> {
    await this.#settings.cgroups?.close();
  }
}
