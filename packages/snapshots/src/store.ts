/**
 * Snapshots on disk. A generation is a directory that is published by a rename, so it is whole or absent.
 *
 *   <machine>/memory                     the guest's memory while it runs
 *   <machine>/snapshots/tmp-<generation> a snapshot that is being taken
 *   <machine>/snapshots/<generation>/    memory (a hard link), devices, manifest.json, later seal.json
 */
import { link, mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { besideMemory, type DeviceState, type Vmm } from "@hibernaut/hypervisor";
import { ifAbsent, isThere } from "@hibernaut/lib/absence";
import { allocatedBytes } from "@hibernaut/lib/disk-files";
import { flush } from "@hibernaut/lib/durable";
import { copyLeavingRoom } from "@hibernaut/lib/roomy-copy";
import { GenerationFiles, UNSEALED, unreadable } from "./check.ts";
import { checkedJson } from "./checked-json.ts";
import { fingerprint } from "./fingerprint.ts";
import { flawToInherit, inherit, manifestIn } from "./inherit.ts";
import {
  type HypervisorRule,
  mismatch,
  type SnapshotManifest,
  type SnapshotOrigin,
  sameHypervisor,
  type TakenFrom,
  takenFrom,
} from "./manifest.ts";
import { fileNames, OWN_NAMES } from "./names.ts";
import type { ScrubOptions } from "./scrub.ts";
import { readSeal } from "./seal.ts";
import { Sealer, type SealerOptions, sealFile } from "./sealer.ts";

const TEMPORARY = "tmp-";
const MANIFEST = "the manifest";

/** A generation that is not published yet. */
interface Draft {
  generation: string;
  folder: string;
  /** Path to which the hypervisor writes its device state. */
  devices: string;
}

/** When a generation was taken. */
interface TakenAt {
  /** RFC 3339. */
  createdAt: string;
  /** The guest's clock when it was paused, in milliseconds since 1970. */
  clockMs: number;
}

/** A published generation whose manifest matches what is installed now. */
export interface FittingSnapshot {
  generation: string;
  devices: DeviceState;
  /** The guest's clock when it was paused, in milliseconds since 1970. Undefined in snapshots of earlier versions. */
  clockMs: number | undefined;
  /**
   * Its files. Check them while QEMU starts, and load them only when the check has passed. What may have changed from
   * outside is checked before: reading all of it can take longer than a resume.
   */
  files: Pick<GenerationFiles, "damage" | "flaw">;
}

export interface SnapshotStoreOptions extends SealerOptions {
  /** Returns the directory of a machine's files. */
  machineFolder(machineId: string): string;
  /** By default, a hypervisor resumes only its own snapshots. */
  refusedHypervisor?: HypervisorRule;
}

/** The snapshots of all machines. */
export class SnapshotStore {
  readonly #machineFolder: (machineId: string) => string;
  readonly #refusedHypervisor: HypervisorRule;
  readonly #bootId: string;
  readonly #sealer: Sealer;

  constructor(options: SnapshotStoreOptions) {
    this.#machineFolder = options.machineFolder;
    this.#refusedHypervisor = options.refusedHypervisor ?? sameHypervisor;
    this.#bootId = options.bootId;
    this.#sealer = new Sealer(options);
  }

  /** Ends the work in the background. */
  close(): Promise<void> {
    return this.#sealer.close();
  }

  /** Makes an empty directory for a generation that is about to be taken. */
  async draft(machineId: string, generation: string): Promise<Draft> {
    const folder = join(this.#folder(machineId), TEMPORARY + generation);
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return { generation, folder, devices: join(folder, "devices") };
  }

  /**
   * Publishes a draft whose device state and memory are already durable. Once this resolves, the snapshot survives a
   * power cut; when it rejects, there is no snapshot. It is sealed in the background afterwards. Returns the snapshot's
   * size on disk, in bytes.
   */
  async publish(draft: Draft, origin: SnapshotOrigin, takenAt: TakenAt): Promise<number> {
    const memory = join(draft.folder, "memory");
    await link(join(this.#machineFolder(origin.machineId), "memory"), memory);
    const { devices } = await writeManifest(draft.folder, origin, { ...takenAt, generation: draft.generation });
    await flush(draft.folder);
    const file = await stat(memory);
    const folder = this.folderOf(origin.machineId, draft.generation);
    await rename(draft.folder, folder);
    await flush(this.#folder(origin.machineId));
    this.#sealer.add(origin.machineId, folder);
    return allocatedBytes(file) + devices.size;
  }

  /** The directory of a generation. */
  folderOf(machineId: string, generation: string): string {
    return join(this.#folder(machineId), generation);
  }

  /** The path of the memory in the directory of a generation. */
  memoryOf(folder: string): string {
    return join(folder, "memory");
  }

  /** Begins a copy of a paused guest's state in a directory elsewhere, with its device state. */
  async captureCopy(folder: string, vmm: Pick<Vmm, "capture">, signal: AbortSignal): Promise<void> {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await vmm.capture(join(folder, "devices"), signal, { durable: false });
  }

  /**
   * Completes a copy whose memory has been put into its directory. It is a generation for the restored platform only: here,
   * nothing finds it. Returns its size on disk, in bytes.
   */
  async describeCopy(
    folder: string,
    origin: SnapshotOrigin,
    takenAt: TakenAt & { generation: string },
  ): Promise<number> {
    const { devices } = await writeManifest(folder, origin, takenAt);
    return allocatedBytes(await stat(join(folder, "memory"))) + devices.size;
  }

  /** Lists the files of a sleeping machine's generation that a backup needs, as absolute paths. */
  async filesOf(machineId: string, generation: string): Promise<string[]> {
    const folder = this.folderOf(machineId, generation);
    const files = ["memory", "devices", "manifest.json", "seal.json"].map((name) => join(folder, name));
    const present = await Promise.all(files.map(isThere));
    return files.filter((_, index) => present[index]);
  }

  /**
   * Finds a generation. Returns a reason instead when it cannot be resumed here, such as `guest_bundle_changed: ...`. Rejects
   * when the host cannot read it, as all of this does: that says nothing about the snapshot.
   */
  async fitting(generation: string, now: SnapshotOrigin): Promise<FittingSnapshot | string> {
    const folder = this.folderOf(now.machineId, generation);
    const manifest = await this.#readable(now.machineId, generation);
    if (typeof manifest === "string") return manifest;
    const difference = mismatch(manifest, now, this.#refusedHypervisor);
    if (difference !== undefined) return difference;
    const devices = { file: join(folder, "devices"), takenBy: manifest.hypervisor };
    const files = new GenerationFiles(folder, manifest, this.#bootId);
    return { generation, devices, clockMs: manifest.guest_clock_ms, files };
  }

  /** Returns what a published generation was taken from, or why its manifest cannot be read. */
  takenFrom(machineId: string, generation: string): Promise<TakenFrom | string> {
    return this.#readable(machineId, generation);
  }

  /** The same for a generation in a directory elsewhere, such as that of a template. */
  async takenIn(folder: string): Promise<TakenFrom | string> {
    return manifestIn(folder).catch((error: unknown) => unreadable(MANIFEST, error));
  }

  /** Why a snapshot that was taken from this cannot be resumed here. Undefined when it can. */
  refusal(taken: TakenFrom, now: SnapshotOrigin): string | undefined {
    return mismatch(taken, now, this.#refusedHypervisor);
  }

  /** Says why nothing can be born from the generation in a directory; see {@link flawToInherit}. */
  flawToInherit(folder: string, signal: AbortSignal): Promise<string | undefined> {
    return flawToInherit(folder, this.#bootId, signal);
  }

  /**
   * Reads all of a generation in a directory elsewhere, and seals it, unless it came with a seal. `machineId` is the machine
   * that it was taken from.
   */
  async sealIn(folder: string, machineId: string, signal: AbortSignal): Promise<void> {
    if ((await readSeal(sealFile(folder))) === undefined) await this.#sealer.seal(machineId, folder, signal);
  }

  /** Makes a copy of a generation another machine's; see {@link inherit}. */
  inherit(inheritance: Parameters<typeof inherit>[0]): Promise<void> {
    return inherit(inheritance, this.#bootId);
  }

  /** A generation came from another host, or another machine, whole: it is sealed in the background. */
  arrived(machineId: string, generation: string): void {
    this.#sealer.add(machineId, this.folderOf(machineId, generation));
  }

  /** When all of a generation was read last: at its suspend, or by {@link scrub}. Undefined if it is not sealed. */
  async verifiedAt(machineId: string, generation: string): Promise<Date | undefined> {
    const files = await this.#files(machineId, generation).catch((error: unknown) => unreadable(MANIFEST, error));
    return typeof files === "string" ? undefined : files.verifiedAt();
  }

  /**
   * Reads a sleeping machine's generation from the disk, and seals it if nothing has. Resolves with the reason when it is
   * damaged, `snapshot_corrupt: ...` or `snapshot_missing: ...`. Rejects when aborted, which the caller does as soon as the
   * machine starts, and when the disk cannot be read or written: that proves nothing.
   */
  async scrub(machineId: string, generation: string, options: ScrubOptions): Promise<string | undefined> {
    const files = await this.#files(machineId, generation);
    if (typeof files === "string") return files;
    const found = await files.scrub(options);
    if (found !== UNSEALED) return found;
    await this.#sealer.seal(machineId, this.folderOf(machineId, generation), options.signal);
    return undefined;
  }

  /** Returns what a machine's record says about a published generation. Undefined when its manifest cannot be read. */
  async describe(
    machineId: string,
    generation: string,
  ): Promise<{ generation: string; created_at: string; size_bytes: number } | undefined> {
    const manifest = await this.#readable(machineId, generation);
    if (typeof manifest === "string") return undefined;
    const memory = await stat(join(this.folderOf(machineId, generation), "memory")).catch(ifAbsent(undefined));
    return {
      generation,
      created_at: manifest.created_at,
      size_bytes: allocatedBytes(memory ?? { blocks: 0 }) + manifest.files.devices.size,
    };
  }

  /** The machine starts without its snapshot being staged: work on it in the background ends. */
  interrupt(machineId: string): void {
    this.#sealer.stop(machineId);
  }

  /**
   * Links the snapshot's memory to the path that the machine's VMM will map. Work on it in the background ends. Resolves with
   * whether the file has further names: it is then the memory of a template, or of other machines, too, and nobody may write to
   * it. The file system counts them, so that this stays right whatever becomes of the others, or of a copy elsewhere.
   */
  async stage(machineId: string, generation: string): Promise<{ shared: boolean }> {
    this.#sealer.stop(machineId);
    const target = join(this.#machineFolder(machineId), "memory");
    for (const name of [target, ...Object.values(besideMemory(target))]) await rm(name, { force: true });
    await link(join(this.folderOf(machineId, generation), "memory"), target);
    // Fewer than there must be: the file system does not count them.
    return { shared: (await fileNames.count(target)) !== OWN_NAMES };
  }

  /**
   * Puts a copy of the memory that is shared in the place of what was staged: for a VMM that has to write to it. Rejects when
   * aborted, and when the disk has no room for it.
   */
  async stageCopy(machineId: string, signal: AbortSignal): Promise<void> {
    const target = join(this.#machineFolder(machineId), "memory");
    const { own } = besideMemory(target);
    await copyLeavingRoom(target, own, signal);
    await rename(own, target);
  }

  /** Removes a generation, durably once this resolves. Safe to repeat. */
  async discard(machineId: string, generation: string): Promise<void> {
    const folder = this.folderOf(machineId, generation);
    this.#sealer.stop(machineId, folder);
    // Renamed first, in one step: a directory that is half deleted must not look like a published generation.
    const doomed = join(this.#folder(machineId), `${TEMPORARY}discarded-${generation}`);
    await rename(folder, doomed).catch(ifAbsent(undefined));
    await rm(doomed, { recursive: true, force: true });
    await rm(join(this.#folder(machineId), TEMPORARY + generation), { recursive: true, force: true });
    await flush(this.#folder(machineId)).catch(ifAbsent(undefined));
  }

  /** Removes all generations except `keep`, and everything that was left unfinished. */
  async discardOthers(machineId: string, keep: string | undefined): Promise<void> {
    const names = await readdir(this.#folder(machineId)).catch(ifAbsent<string[]>([]));
    for (const name of names) {
      if (name.startsWith(TEMPORARY)) await rm(join(this.#folder(machineId), name), { recursive: true, force: true });
      else if (name !== keep) await this.discard(machineId, name);
    }
  }

  /** Lists the generations that were published and not discarded. */
  async published(machineId: string): Promise<string[]> {
    const names = await readdir(this.#folder(machineId)).catch(ifAbsent<string[]>([]));
    const whole = names.filter((name) => !name.startsWith(TEMPORARY));
    const present = await Promise.all(
      whole.map((name) => isThere(join(this.#folder(machineId), name, "manifest.json"))),
    );
    return whole.filter((_, index) => present[index]).sort();
  }

  async #files(machineId: string, generation: string): Promise<GenerationFiles | string> {
    const manifest = await this.#manifest(machineId, generation);
    if (typeof manifest === "string") return manifest;
    return new GenerationFiles(this.folderOf(machineId, generation), manifest, this.#bootId);
  }

  /** Returns why not instead when it is missing or damaged. Rejects when the host cannot read it. */
  #readable(machineId: string, generation: string): Promise<SnapshotManifest | string> {
    return this.#manifest(machineId, generation).catch((error: unknown) => unreadable(MANIFEST, error));
  }

  /** Rejects when it is there and cannot be read. */
  async #manifest(machineId: string, generation: string): Promise<SnapshotManifest | string> {
    return manifestIn(this.folderOf(machineId, generation));
  }

  #folder(machineId: string): string {
    return join(this.#machineFolder(machineId), "snapshots");
  }
}

/** Writes the manifest of the memory and the device state in a directory. */
async function writeManifest(
  folder: string,
  origin: SnapshotOrigin,
  { generation, createdAt, clockMs }: TakenAt & { generation: string },
): Promise<SnapshotManifest["files"]> {
  const [memory, devices] = await Promise.all([
    fingerprint(join(folder, "memory"), "sampled"),
    fingerprint(join(folder, "devices"), "whole"),
  ]);
  const manifest: SnapshotManifest = {
    format: 2,
    ...takenFrom(origin),
    generation,
    created_at: createdAt,
    guest_clock_ms: clockMs,
    files: { memory, devices },
  };
  await writeFile(join(folder, "manifest.json"), checkedJson(manifest), { mode: 0o600, flush: true });
  return manifest.files;
}
