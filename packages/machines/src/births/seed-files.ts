/**
 * Where the state of machines lies from which others are born. A seed is a directory that is laid out like that of a
 * machine; nobody writes to its files.
 *
 *   templates/<id>/                a template
 *   templates/tmp-<id>/            a seed that is being taken, or of a fork in progress
 *   templates/births/<machine>/    the files of a machine that is about to be born, or to be restored
 *   templates/contents/<id>.json   what a template consists of, for other hosts; made again if it is gone
 *   templates/arriving/<id>/       what has come of a template of another host, and may be continued
 */
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { ifAbsent, isThere } from "@hibernaut/lib/absence";
import {
  allocatedBytes,
  type CopyHaste,
  canCloneIn,
  copySparseUntilAborted,
  lackOfRoom,
} from "@hibernaut/lib/disk-files";
import { flush } from "@hibernaut/lib/durable";
import type { FileCopier } from "../file-copier.ts";

const TEMPORARY = "tmp-";
const BIRTHS = "births";
const ARRIVING = "arriving";
const CONTENTS = "contents";
/** The files of a machine that another one has no use for. */
const OWN = ["logs", "console.log"];

/** The seeds of one data directory. */
export class SeedFiles {
  readonly #root: string;
  readonly #machineRoot: string;
  #clones: Promise<boolean> | undefined;

  constructor(machineRoot: string) {
    this.#machineRoot = machineRoot;
    this.#root = join(dirname(machineRoot), "templates");
  }

  /** The directory of a template. */
  folder(id: string): string {
    return join(this.#root, id);
  }

  /** The directory of a seed that is not a template, or not yet. */
  draft(id: string): string {
    return join(this.#root, TEMPORARY + id);
  }

  /** The file with what a template consists of. Not in its directory, which never changes. */
  contents(id: string): string {
    return join(this.#root, CONTENTS, `${id}.json`);
  }

  /** Where templates of other hosts are put together, each in a directory named by its id. A restart of the platform leaves it. */
  get arrivals(): string {
    return join(this.#root, ARRIVING);
  }

  /** Whether copies share their blocks with what they are copies of. */
  clones(): Promise<boolean> {
    this.#clones ??= canCloneIn(this.#root);
    return this.#clones;
  }

  /** Rejects with `unavailable` unless the disk has room for this many bytes more. */
  async requireRoom(bytes: number): Promise<void> {
    if (await this.clones()) return;
    const lack = await lackOfRoom(this.#root, bytes);
    if (lack === undefined) return;
    throw new HibernautError(
      "unavailable",
      `The disk of ${this.#root} has ${lack.free} MB free, and the new machines need ${lack.needed} MB. Free some space, make fewer, or delete templates that nobody needs.`,
    );
  }

  /** Copies the files of one machine into the draft of a seed. */
  copierTo(id: string): FileCopier {
    return new SeedCopier(this.draft(id), this.#machineRoot);
  }

  /** A draft, or what is whole in another directory, becomes a template, durably. Resolves with what it takes on the disk, in bytes. */
  async publish(id: string, from = this.draft(id)): Promise<number> {
    const entries = await readdir(from, { recursive: true, withFileTypes: true });
    const sizes = entries.map(async (entry) => {
      const path = join(entry.parentPath, entry.name);
      await flush(path);
      return allocatedBytes(await stat(path));
    });
    const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    await flush(from);
    await rename(from, this.folder(id));
    await flush(this.#root);
    return bytes;
  }

  async removeDraft(id: string): Promise<void> {
    await rm(this.draft(id), { recursive: true, force: true });
  }

  /** Deletes a template's files. Safe to repeat. */
  async remove(id: string): Promise<void> {
    await rename(this.folder(id), this.draft(id)).catch(ifAbsent(undefined));
    await rm(this.contents(id), { force: true });
    await this.removeDraft(id);
  }

  /** Where the files of a machine are put together before it is stored. */
  cradle(machineId: string): string {
    return join(this.#root, BIRTHS, machineId);
  }

  /** The cradles are where they are, also after a power cut; the first one has made the directories above it. */
  async flushCradles(): Promise<void> {
    for (const folder of [join(this.#root, BIRTHS), this.#root, dirname(this.#root)]) await flush(folder);
  }

  /** Deletes what was put together of a machine that will not be. */
  async abandon(machineId: string): Promise<void> {
    await rm(this.cradle(machineId), { recursive: true, force: true });
  }

  /** Puts the files of a machine that is stored in their place, durably. */
  async deliver(machineId: string): Promise<void> {
    await rename(this.cradle(machineId), join(this.#machineRoot, machineId));
    await flush(this.#machineRoot);
  }

  /**
   * Puts the files of a generation, and the layer that belongs to it, in the place of those that a machine has, durably. What
   * was interrupted is done by doing it again.
   */
  async replace(machineId: string, generation: string): Promise<void> {
    const [cradle, folder] = [this.cradle(machineId), join(this.#machineRoot, machineId)];
    await mkdir(join(folder, "snapshots"), { recursive: true, mode: 0o700 });
    // The memory comes last: as long as it is in the cradle, this is not over.
    for (const name of ["layer.ext4", "hot-pages.json", join("snapshots", generation)])
      await rename(join(cradle, name), join(folder, name)).catch(ifAbsent(undefined));
    await flush(join(folder, "snapshots"));
    await flush(folder);
    await this.abandon(machineId);
  }

  /** Whether a replacement failed on its way: the machine is that generation by its record, and not by its files. */
  async isPending(machineId: string, generation: string | undefined): Promise<boolean> {
    return generation !== undefined && isThere(join(this.cradle(machineId), "snapshots", generation));
  }

  /** Finishes such a replacement. */
  async finish(machineId: string, generation: string): Promise<void> {
    if (await this.isPending(machineId, generation)) await this.replace(machineId, generation);
  }

  /**
   * After a restart: delivers the machines that are stored, and deletes everything that was left unfinished. Being stored is
   * what makes a machine, or a template, exist.
   */
  async tidy(stored: {
    /** The machine's generation; empty if it has none. Undefined if there is no such machine. */
    machine(id: string): string | undefined;
    template(id: string): boolean;
    /** Whether what has come of templates of other hosts may be continued. Not on a host that has left its cluster. */
    arriving: boolean;
  }): Promise<void> {
    const births = join(this.#root, BIRTHS);
    for (const id of await readdir(births).catch(ifAbsent<string[]>([]))) {
      const generation = stored.machine(id);
      if (generation !== undefined && !(await isThere(join(this.#machineRoot, id)))) await this.deliver(id);
      else if (generation && (await isThere(join(births, id, "snapshots", generation))))
        await this.replace(id, generation);
      else await rm(join(births, id), { recursive: true, force: true });
    }
    for (const file of await readdir(join(this.#root, CONTENTS)).catch(ifAbsent<string[]>([])))
      if (!stored.template(file.replace(/\.json$/, ""))) await rm(join(this.#root, CONTENTS, file), { force: true });
    for (const id of await readdir(this.#root).catch(ifAbsent<string[]>([])))
      if (id !== BIRTHS && id !== CONTENTS && !(id === ARRIVING && stored.arriving) && !stored.template(id))
        await rm(join(this.#root, id), { recursive: true, force: true });
  }
}

class SeedCopier implements FileCopier {
  readonly purpose = { name: "a fork", verb: "fork" };
  /** A fork is what continues where the other one is. */
  readonly needsMemory = true;
  readonly folder: string;
  readonly #machineRoot: string;

  constructor(folder: string, machineRoot: string) {
    this.folder = folder;
    this.#machineRoot = machineRoot;
  }

  pathOf(file: string): string {
    return join(this.folder, ...this.#within(file));
  }

  async copyFile(from: string, to: string, signal: AbortSignal, haste?: CopyHaste): Promise<void> {
    if (OWN.includes(this.#within(from)[0] ?? "")) return;
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    await copySparseUntilAborted(from, to, signal, haste);
  }

  clones(): Promise<boolean> {
    return canCloneIn(this.folder);
  }

  async discard(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }

  /** The parts of a path below the machine's directory. */
  #within(file: string): string[] {
    return relative(this.#machineRoot, file).split(sep).slice(1);
  }
}
