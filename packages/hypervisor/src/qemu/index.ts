/** The hypervisor contract on QEMU. */
import { appendFile, open, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { HibernautError } from "@hibernaut/domain/errors";
import { abortable } from "@hibernaut/lib/async";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import {
  type DeviceState,
  type Hypervisor,
  type HypervisorIdentity,
  type Vmm,
  VmmFailed,
  VmmKilled,
  type VmmRef,
  type VmmSpec,
} from "../contract.ts";
import { cpuIn, hardwareIn, isBorrowedIn, qemuArguments, socketPaths } from "./arguments.ts";
import { brokenBy, lastLine, meansTaken, readTail } from "./failure.ts";
import { argumentsOf, findProcesses, hasThread } from "./find-processes.ts";
import { type Hardware, type HostCpu, hardwareOf, identityOf, PRESENT_HARDWARE } from "./hardware.ts";
import { askHostCpu } from "./host-cpu.ts";
import { readAhead } from "./hot-pages.ts";
import { HANDLES } from "./jail/arguments.ts";
import type { Jail } from "./jail/jail.ts";
import { removeFilters } from "./kept-disks/nodes.ts";
import { type QemuLimits, USUAL_LIMITS } from "./limits.ts";
import { makeMemoryFile, reserveHoles } from "./memory-file.ts";
import { isAlive, killProcess, requireEnded, type Started, spawnDetached, watchExit } from "./process.ts";
import { Qmp, type QmpFault } from "./qmp.ts";
import { QemuVmm } from "./vmm.ts";

interface QemuSettings {
  /** Path or name of the QEMU program. */
  program: string;
  /** What `qemu --version` prints. Recorded in snapshots. */
  version: string;
  accelerator: "kvm" | "tcg";
  /** The CPU that guests see under KVM. */
  host?: HostCpu | undefined;
  /** By default, the usual ones. */
  limits?: QemuLimits;
  /** Counts what goes wrong between the platform and QEMU. By default, nobody does. */
  onFault?: ((fault: QmpFault) => void) | undefined;
  /** Makes the jails that guests run in. Without it, they run as the platform does. */
  jail?: Jail | undefined;
  /** Parent of all run directories, `<runRoot>/<machine id>`. */
  runRoot: string;
  /** Parent of all machine directories, `<machineRoot>/<machine id>`. */
  machineRoot: string;
}

/** Runs guests in QEMU, one process for each. */
export class QemuHypervisor implements Hypervisor {
  readonly #settings: QemuSettings;
  readonly #limits: QemuLimits;
  /** What connections to QEMU are made with. */
  readonly #connecting: Parameters<typeof Qmp.connect>[2];

  constructor(settings: QemuSettings) {
    const { limits = USUAL_LIMITS, onFault } = settings;
    this.#settings = settings;
    this.#limits = limits;
    this.#connecting = { commandMs: limits.commandMs, ...(onFault && { onFault }) };
  }

  identity(): HypervisorIdentity {
    return identityOf(this.#settings, PRESENT_HARDWARE);
  }

  async borrows(): Promise<boolean> {
    return (await this.#settings.jail?.flawInBorrowing()) === undefined && this.#settings.jail !== undefined;
  }

  async boot(spec: VmmSpec, signal: AbortSignal): Promise<Vmm> {
    await requireEnded(spec.machineId);
    await makeMemoryFile(spec.memory, spec.memoryMb, this.#limits);
    return (await this.#start({ ...spec, borrowed: false }, { hardware: PRESENT_HARDWARE }, signal)).vmm;
  }

  async restore(
    spec: VmmSpec,
    devices: DeviceState,
    signal: AbortSignal,
    checked: Promise<void> = Promise.resolve(),
  ): Promise<Vmm> {
    await requireEnded(spec.machineId);
    background(readAhead(spec.memory, signal), "reading memory ahead");
    if (spec.borrowed !== true) await reserveHoles(spec.memory, spec.memoryMb, this.#limits);
    const { vmm, started } = await this.#startWith(devices, spec, signal);
    try {
      await abortable(checked, signal);
      await vmm.load(signal);
      return vmm;
    } catch (error) {
      const killed = await wasKilled(started, this.#limits);
      await vmm.kill();
      throw killed ?? error;
    }
  }

  async #startWith(
    { file, takenBy }: DeviceState,
    spec: VmmSpec,
    signal: AbortSignal,
  ): Promise<{ vmm: QemuVmm; started: Started }> {
    await using state = await open(file, "r");
    return await this.#start(spec, { state: state.fd, hardware: hardwareOf(takenBy) ?? PRESENT_HARDWARE }, signal);
  }

  find(): Promise<VmmRef[]> {
    return findProcesses(this.#settings);
  }

  async adopt(ref: VmmRef, signal: AbortSignal): Promise<Vmm> {
    if (!(await isAlive(ref)))
      throw new HibernautError("unavailable", `The QEMU process of machine ${ref.machineId} has ended.`);
    const runDir = join(this.#settings.runRoot, ref.machineId);
    const limit = AbortSignal.any([signal, AbortSignal.timeout(this.#limits.adoptMs)]);
    const qmp = await Qmp.connect(socketPaths(runDir).qmp, limit, this.#connecting);
    await requireSame(ref, qmp).catch((error: unknown) => {
      qmp.close();
      throw error;
    });
    const { enabled } = await qmp.execute<{ enabled: boolean }>("query-kvm");
    const args = await argumentsOf(ref.pid);
    const host = enabled ? await askHostCpu(qmp, cpuIn(args)) : undefined;
    const about = { version: qmp.version, accelerator: enabled ? "kvm" : "tcg", host } as const;
    const identity = identityOf(about, hardwareIn(args));
    const folder = join(this.#settings.machineRoot, ref.machineId);
    const borrowed = isBorrowedIn(args);
    const files = { runDir, memory: join(folder, "memory"), console: join(folder, "console.log"), borrowed };
    const cgroup = await this.#settings.jail?.cgroupOf(ref.pid);
    const vmm = new QemuVmm(ref, identity, qmp, files, { limits: this.#limits, cgroup });
    this.#cleanAfter(vmm, cgroup);
    const { status } = await qmp.execute<{ status: string }>("query-status");
    if (brokenBy(status) === undefined) {
      // A platform that ended while it copied the machine left them, and no suspend works with them.
      await removeFilters(qmp).catch(() => {});
      return vmm;
    }
    await abortable(vmm.exited, limit);
    throw new VmmFailed(vmm.failure);
  }

  end(ref: VmmRef): Promise<void> {
    return killProcess(ref);
  }

  requireEnded(machineId: string): Promise<void> {
    return requireEnded(machineId);
  }

  #cleanAfter(vmm: Vmm, cgroup: string | undefined): void {
    if (cgroup !== undefined)
      background(
        vmm.exited.then(() => this.#settings.jail?.clean(cgroup)),
        "cleaning up after a jail",
      );
  }

  /**
   * Starts QEMU, and once more if an earlier one of the machine, of which nobody knows, was in the way: that is ended first.
   */
  async #start(
    spec: VmmSpec,
    options: { state?: number; hardware: Hardware },
    signal: AbortSignal,
  ): Promise<{ vmm: QemuVmm; started: Started }> {
    try {
      return await this.#startOnce(spec, options, signal);
    } catch (error) {
      if (signal.aborted || !meansTaken(messageOf(error)) || !(await this.#endOrphans(spec))) throw error;
      return this.#startOnce(spec, options, signal);
    }
  }

  /** Ends every QEMU of a machine that is to have none. Returns whether there was one. */
  async #endOrphans({ machineId, consoleLog }: VmmSpec): Promise<boolean> {
    const orphans = (await this.find()).filter((ref) => ref.machineId === machineId);
    for (const ref of orphans) {
      await appendFile(consoleLog, `hibernaut: process ${ref.pid} still had what the machine needs; ending it\n`);
      await killProcess(ref);
    }
    return orphans.length > 0;
  }

  /** With `state`, the file descriptor of a device state, QEMU waits until it is told to load that. */
  async #startOnce(
    spec: VmmSpec,
    { state, hardware }: { state?: number; hardware: Hardware },
    signal: AbortSignal,
  ): Promise<{ vmm: QemuVmm; started: Started }> {
    const { qmp: path, agent } = socketPaths(spec.runDir);
    await Promise.all([rm(path, { force: true }), rm(agent, { force: true })]);
    const { accelerator, program, host } = this.#settings;
    const incoming = state !== undefined;
    const before = await stat(spec.consoleLog).catch(() => undefined);
    const jail = await this.#settings.jail?.prepare(spec, { qmp: path, agent });
    const handles = jail && HANDLES;
    const args = qemuArguments(spec, { accelerator, hardware, kvmCpu: host?.cpu, incoming, handles });
    const began = AbortSignal.any([signal, AbortSignal.timeout(this.#limits.startMs)]);
    const options = { machineId: spec.machineId, log: spec.consoleLog, inherited: state, jail, signal: began };
    const started = await spawnDetached(program, args, options).catch((error: unknown) => {
      background(this.#settings.jail?.clean(jail?.cgroup), "cleaning up after a jail");
      signal.throwIfAborted();
      throw error;
    });
    const { ref } = started;
    // A QEMU that rejects its arguments ends at once: do not wait for its socket.
    const gone = new AbortController();
    const connected = new AbortController();
    background(
      watchExit(ref, connected.signal).then(() => gone.abort(new Error("the process ended during its start"))),
      "watching a start",
    );
    const limit = AbortSignal.any([signal, AbortSignal.timeout(this.#limits.startMs), gone.signal]);
    try {
      const connection = await Qmp.connect(path, limit, this.#connecting);
      const listensAt = performance.now();
      const identity = identityOf({ version: connection.version, accelerator, host }, hardware);
      const { runDir, memory, consoleLog, borrowed = false } = spec;
      const files = { runDir, memory, console: consoleLog, consoleBefore: before?.size ?? 0, borrowed };
      const vmm = new QemuVmm(ref, identity, connection, files, { limits: this.#limits, cgroup: jail?.cgroup });
      vmm.listensAt = listensAt;
      this.#cleanAfter(vmm, jail?.cgroup);
      return { vmm, started };
    } catch (error) {
      const killed = signal.aborted ? undefined : await wasKilled(started, this.#limits);
      await killProcess(ref);
      background(this.#settings.jail?.clean(jail?.cgroup), "cleaning up after a jail");
      signal.throwIfAborted();
      if (killed !== undefined) throw killed;
      // Why, in its own words: the connection only says that it is gone.
      const said = lastLine(await readTail(spec.consoleLog, before?.size)) ?? messageOf(error);
      const what = `QEMU did not start (${said}). Its output is in ${spec.consoleLog}.`;
      throw new HibernautError("unavailable", what, {}, { cause: error });
    } finally {
      connected.abort();
    }
  }
}

/** Rejects unless it is this process that answers on the machine's socket: only the platform can make a file there. */
async function requireSame({ machineId, pid }: VmmRef, qmp: Qmp): Promise<void> {
  const [cpu] = await qmp.execute<{ "thread-id": number }[]>("query-cpus-fast");
  if (cpu !== undefined && (await hasThread(pid, cpu["thread-id"]))) return;
  throw new HibernautError(
    "unavailable",
    `Process ${pid} is not the QEMU that answers on the socket of machine ${machineId}.`,
  );
}

/**
 * Finds out whether someone else killed the process; call this before killing it. SIGKILL comes from people and from the
 * kernel's out-of-memory killer, never from QEMU itself.
 */
async function wasKilled({ ended }: Started, { dyingMs }: QemuLimits): Promise<VmmKilled | undefined> {
  // Referenced: without a timer, nothing would keep a short program such as doctor alive until the process has ended.
  const waited = new AbortController();
  const by = await Promise.race([ended, delay(dyingMs, undefined, { signal: waited.signal }).catch(() => undefined)]);
  waited.abort();
  if (by !== "SIGKILL") return undefined;
  return new VmmKilled("QEMU was killed while the machine started; the host may be short of memory");
}
