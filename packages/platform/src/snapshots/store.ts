/**
 * Snapshots on disk. A generation is a directory that is published by a rename, so it is whole or absent.
 *
 *   <machine>/memory                     the guest's memory while it runs
 *   <machine>/snapshots/tmp-<generation> a snapshot that is being taken
 *   <machine>/snapshots/<generation>/    memory (a hard link), devices, manifest.json
 */
import { constants } from "node:fs";
import { access, link, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { DeviceState } from "../hypervisor/contract.ts";
import { flush } from "../lib/durable.ts";
import { fingerprint } from "./fingerprint.ts";
import {
  type HypervisorRule,
  mismatch,
  parseManifest,
  sameHypervisor,
  type SnapshotManifest,
  type SnapshotOrigin,
} from "./manifest.ts";

const TEMPORARY = "tmp-";

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
   * Checks the files. Resolves with the reason when they cannot be used, `snapshot_missing: ...` or
   * `snapshot_corrupt: ...`, otherwise with undefined. Never rejects. The check reads from the disk, so QEMU may load
   * the snapshot meanwhile, but no guest may run before the check has passed.
   */
  flaw(): Promise<string | undefined>;
}

/** The snapshots of all machines. */
export class SnapshotStore {
  readonly #machineFolder: (machineId: string) => string;
  readonly #refusedHypervisor: HypervisorRule;

  /** `machineFolder` returns the directory of a machine's files. */
  constructor(machineFolder: (machineId: string) => string, refusedHypervisor: HypervisorRule = sameHypervisor) {
    this.#machineFolder = machineFolder;
    this.#refusedHypervisor = refusedHypervisor;
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
   * power cut; when it rejects, there is no snapshot. Returns the snapshot's size on disk, in bytes.
   */
  async publish(draft: Draft, origin: SnapshotOrigin, { createdAt, clockMs }: TakenAt): Promise<number> {
    const memory = join(draft.folder, "memory");
    await link(join(this.#machineFolder(origin.machineId), "memory"), memory);
    const [memoryPrint, devicesPrint] = await Promise.all([
      fingerprint(memory, "sampled"),
      fingerprint(draft.devices, "whole"),
    ]);
    const manifest: SnapshotManifest = {
      format: 1,
      machine_id: origin.machineId,
      machine_version: origin.machineVersion,
      generation: draft.generation,
      created_at: createdAt,
      guest_clock_ms: clockMs,
      hypervisor: origin.hypervisor,
      bundle_version: origin.bundleVersion,
      agent_protocol: origin.agentProtocol,
      image_digest: origin.imageDigest,
      cpus: origin.cpus,
      memory_mb: origin.memoryMb,
      files: { memory: memoryPrint, devices: devicesPrint },
    };
    await writeFile(join(draft.folder, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`, {
      mode: 0o600,
      flush: true,
    });
    await flush(draft.folder);
    const { blocks } = await stat(memory);
    await rename(draft.folder, join(this.#folder(origin.machineId), draft.generation));
    await flush(this.#folder(origin.machineId));
    return blocks * 512 + devicesPrint.size;
  }

  /** Finds a generation. Returns a reason instead when it cannot be resumed here, such as `guest_bundle_changed: ...`. */
  async fitting(generation: string, now: SnapshotOrigin): Promise<FittingSnapshot | string> {
    const folder = join(this.#folder(now.machineId), generation);
    const text = await readFile(join(folder, "manifest.json"), "utf8").catch(() => undefined);
    if (text === undefined) return "snapshot_missing: there is no manifest";
    const manifest = parseManifest(text);
    if (typeof manifest === "string") return manifest;
    const difference = mismatch(manifest, now, this.#refusedHypervisor);
    if (difference !== undefined) return difference;
    const flaw = () => flawIn(folder, manifest);
    const devices = { file: join(folder, "devices"), takenBy: manifest.hypervisor };
    return { generation, devices, clockMs: manifest.guest_clock_ms, flaw };
  }

  /** Returns what a machine's record says about a published generation. Undefined when its manifest cannot be read. */
  async describe(
    machineId: string,
    generation: string,
  ): Promise<{ generation: string; created_at: string; size_bytes: number } | undefined> {
    const folder = join(this.#folder(machineId), generation);
    const manifest = parseManifest(await readFile(join(folder, "manifest.json"), "utf8").catch(() => ""));
    if (typeof manifest === "string") return undefined;
    const memory = await stat(join(folder, "memory")).catch(() => undefined);
    return {
      generation,
      created_at: manifest.created_at,
      size_bytes: (memory?.blocks ?? 0) * 512 + manifest.files.devices.size,
    };
  }

  /** Links the snapshot's memory to the path that the machine's VMM will map. */
  async stage(machineId: string, generation: string): Promise<void> {
    const target = join(this.#machineFolder(machineId), "memory");
    await rm(target, { force: true });
    await link(join(this.#folder(machineId), generation, "memory"), target);
  }

  /** Removes a generation, durably once this resolves. Safe to repeat. */
  async discard(machineId: string, generation: string): Promise<void> {
    const folder = join(this.#folder(machineId), generation);
    // Renamed first, in one step: a directory that is half deleted must not look like a published generation.
    const doomed = join(this.#folder(machineId), `${TEMPORARY}discarded-${generation}`);
    await rename(folder, doomed).catch(ignoreMissing);
    await rm(doomed, { recursive: true, force: true });
    await rm(join(this.#folder(machineId), TEMPORARY + generation), { recursive: true, force: true });
    await flush(this.#folder(machineId)).catch(ignoreMissing);
  }

  /** Removes all generations except `keep`, and everything that was left unfinished. */
  async discardOthers(machineId: string, keep: string | undefined): Promise<void> {
    const names = await readdir(this.#folder(machineId)).catch((): string[] => []);
    for (const name of names) {
      if (name.startsWith(TEMPORARY)) await rm(join(this.#folder(machineId), name), { recursive: true, force: true });
      else if (name !== keep) await this.discard(machineId, name);
    }
  }

  /** Lists the generations that were published and not discarded. */
  async published(machineId: string): Promise<string[]> {
    const names = await readdir(this.#folder(machineId)).catch((): string[] => []);
    const whole = names.filter((name) => !name.startsWith(TEMPORARY));
    const present = await Promise.all(
      whole.map((name) => exists(join(this.#folder(machineId), name, "manifest.json"))),
    );
    return whole.filter((_, index) => present[index]).sort();
  }

  #folder(machineId: string): string {
    return join(this.#machineFolder(machineId), "snapshots");
  }
}

async function flawIn(folder: string, { files }: SnapshotManifest): Promise<string | undefined> {
  for (const [name, kind] of [
    ["memory", "sampled"],
    ["devices", "whole"],
  ] as const) {
    const wanted = files[name];
    const found = await fingerprint(join(folder, name), kind).catch(() => undefined);
    if (found === undefined) return `snapshot_missing: there is no ${name} file`;
    if (found.size !== wanted.size)
      return `snapshot_corrupt: the ${name} file has ${found.size} bytes instead of ${wanted.size}`;
    if (found.sha256 !== wanted.sha256) return `snapshot_corrupt: the ${name} file has changed`;
  }
  return undefined;
}

function exists(path: string): Promise<boolean> {
  return access(path, constants.F_OK).then(
    () => true,
    () => false,
  );
}

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOENT") throw error;
}
