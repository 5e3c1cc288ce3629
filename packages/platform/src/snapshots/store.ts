/**
 * Snapshots on disk. One generation is one folder, published by a rename: whole or absent.
 *
 *   <machine>/memory                     the guest's memory while it runs
 *   <machine>/snapshots/tmp-<generation> being taken
 *   <machine>/snapshots/<generation>/    memory (a hard link), devices, manifest.json
 */
import { constants } from "node:fs";
import { access, link, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { flush } from "../lib/durable.ts";
import { fingerprint } from "./fingerprint.ts";
import { misfit, parseManifest, type SnapshotManifest, type SnapshotOrigin } from "./manifest.ts";

const TEMPORARY = "tmp-";

/** A generation that is not published yet. */
interface Draft {
  generation: string;
  folder: string;
  /** Where the hypervisor writes its device state. */
  devices: string;
}

/** When a generation was taken. */
interface Taken {
  /** ISO 8601. */
  createdAt: string;
  /** What the guest's clock said when it stopped, in milliseconds since 1970. */
  clockMs: number;
}

/** A published generation that fits what is there now. */
export interface FittingSnapshot {
  generation: string;
  devices: string;
  /** What the guest's clock said when it stopped, in milliseconds since 1970, if that was noted. */
  clockMs: number | undefined;
  /**
   * Why its files cannot be used: `snapshot_missing: ...` or `snapshot_corrupt: ...`. Reads from the disk, so whoever
   * is in a hurry begins to load it meanwhile; but no guest may run before this has settled with undefined. Never rejects.
   */
  flaw(): Promise<string | undefined>;
}

export class SnapshotStore {
  readonly #machineFolder: (machineId: string) => string;

  /** `machineFolder` names the folder that holds a machine's files. */
  constructor(machineFolder: (machineId: string) => string) {
    this.#machineFolder = machineFolder;
  }

  /** An empty folder for a generation that is about to be taken. */
  async draft(machineId: string, generation: string): Promise<Draft> {
    const folder = join(this.#folder(machineId), TEMPORARY + generation);
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return { generation, folder, devices: join(folder, "devices") };
  }

  /**
   * Publishes a draft whose device state and memory are durable already. When this settles the
   * snapshot survives a power cut; when it rejects there is none. Returns its size on disk in bytes.
   */
  async publish(draft: Draft, origin: SnapshotOrigin, { createdAt, clockMs }: Taken): Promise<number> {
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

  /** The generation, or why it cannot be resumed here: `snapshot_missing: ...`, `guest_bundle_changed: ...`, ... */
  async fitting(generation: string, now: SnapshotOrigin): Promise<FittingSnapshot | string> {
    const folder = join(this.#folder(now.machineId), generation);
    const text = await readFile(join(folder, "manifest.json"), "utf8").catch(() => undefined);
    if (text === undefined) return "snapshot_missing: there is no manifest";
    const manifest = parseManifest(text);
    if (typeof manifest === "string") return manifest;
    const difference = misfit(manifest, now);
    if (difference !== undefined) return difference;
    const flaw = () => flawIn(folder, manifest);
    return { generation, devices: join(folder, "devices"), clockMs: manifest.guest_clock_ms, flaw };
  }

  /** What is to be recorded about a published generation; undefined when its manifest cannot be read. */
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

  /** Puts the snapshot's memory where the machine's VMM will map it. */
  async stage(machineId: string, generation: string): Promise<void> {
    const target = join(this.#machineFolder(machineId), "memory");
    await rm(target, { force: true });
    await link(join(this.#folder(machineId), generation, "memory"), target);
  }

  /** Removes one generation for good; safe to repeat. Durable when it settles. */
  async discard(machineId: string, generation: string): Promise<void> {
    const folder = join(this.#folder(machineId), generation);
    // Out of sight in one step first: a half deleted folder must not look published.
    const doomed = join(this.#folder(machineId), `${TEMPORARY}discarded-${generation}`);
    await rename(folder, doomed).catch(ignoreMissing);
    await rm(doomed, { recursive: true, force: true });
    await rm(join(this.#folder(machineId), TEMPORARY + generation), { recursive: true, force: true });
    await flush(this.#folder(machineId)).catch(ignoreMissing);
  }

  /** Removes all generations but one, and all leftovers. */
  async discardOthers(machineId: string, keep: string | undefined): Promise<void> {
    const names = await readdir(this.#folder(machineId)).catch((): string[] => []);
    for (const name of names) {
      if (name.startsWith(TEMPORARY)) await rm(join(this.#folder(machineId), name), { recursive: true, force: true });
      else if (name !== keep) await this.discard(machineId, name);
    }
  }

  /** Generations that were published and not discarded. */
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
