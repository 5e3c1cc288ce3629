/**
 * What is in one backup, in pieces: copies machine by machine, gives each copy away, and ends with a database that fits all
 * of them. A piece that follows another one of the same files replaces it.
 */
import { mkdir, readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { setImmediate } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { certificatesFolder } from "@hibernaut/certs";
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineCopies, MachineCopy, Resources } from "@hibernaut/machines";
import type { Store } from "@hibernaut/store";
import type { VolumeCopies } from "@hibernaut/volumes";
import { BackupCommands, type FailedCommand } from "./commands.ts";
import type { BackupView } from "./contract.ts";
import { type Known, leaveOut, madeSince } from "./left-out.ts";
import { missingFrom, nothing, type Recorded } from "./missing.ts";
import type { Piece } from "./piece.ts";
import type { Stage } from "./stage.ts";
import { KNOWN_HOSTS_FILE, TARGETS_FILE } from "./targets/target-file.ts";

/**
 * How often what changed or was made since it was copied is copied again. A deploy changes each machine once; machines that keep
 * changing for longer than that are not a state to go back to. What is made during the last round is left to the next backup.
 */
const MOST_ROUNDS = 5;
const DATABASE = "hibernaut.db";
/** As many commands that failed are told of: each is an event, and is kept with the target. */
const MOST_FAILED = 50;
/**
 * The files at the top of the data directory that belong to a backup. The others are made again: the lock, templates of
 * writable layers, and what was found out about this host.
 */
const SMALL_FILES = [
  "secrets.key",
  "registries.json",
  "network.json",
  "config.json",
  "admin-token",
  "failed-carry-overs.json",
  TARGETS_FILE,
  KNOWN_HOSTS_FILE,
];
/** The names of directories that never change. What else is there is not finished, and can be made again. */
const NAMES = { images: /^[0-9a-f]{64}$/, bundles: /^(?!tmp-)/, templates: /^[0-9a-f]{14}$/ };
const KINDS = { images: "image", bundles: "bundle", templates: "template" } as const;

/** What backups are made from. */
export interface BackupParts {
  dataDir: string;
  store: Pick<Store, "copyTo" | "volumes">;
  /** Opens a copy of the database. */
  openStore(file: string): Pick<Store, "machines" | "volumes" | "close">;
  machineCopies: Pick<MachineCopies, "ids" | "copy">;
  /** Runs what apps do before they are backed up. By default, they do nothing. */
  commands?: Pick<Resources, "machines" | "commands">;
  volumes: VolumeCopies;
}

export type Progress = Partial<
  Pick<BackupView, "machinesDone" | "machines" | "bytes" | "longestPauseMs" | "withoutMemory" | "failedCommands">
>;

/** What a piece is of, before it has a place. */
interface Part extends Omit<Piece, "folder" | "immutable" | "volumes"> {
  volumes?: readonly string[];
  immutable?: boolean;
}

/** The content of one backup. */
export class Content {
  readonly #parts: BackupParts;
  readonly #stage: Stage;
  readonly #lends: boolean;
  readonly #report: (progress: Progress) => void;
  readonly #included = nothing();
  readonly #copies = new Map<string, MachineCopy>();
  #longestPauseMs = 0;
  readonly #withoutMemory = new Map<string, BackupView["withoutMemory"][number]>();

  readonly #commands: BackupCommands | undefined;
  readonly #failedCommands: FailedCommand[] = [];

  /** `lends`: whether who takes the pieces knows what becomes of those that are lent. */
  constructor(parts: BackupParts, stage: Stage, lends: boolean, report: (progress: Progress) => void) {
    this.#parts = parts;
    this.#stage = stage;
    this.#lends = lends;
    this.#report = report;
    this.#commands = parts.commands && new BackupCommands(parts.commands);
  }

  /** Yields the pieces. What a piece has is deleted from the stage when the next one is asked for. */
  async *pieces(signal: AbortSignal): AsyncGenerator<Piece, void> {
    yield this.#piece({ kind: "layout", name: "layout", paths: await this.#stage.open() });
    yield* this.#recorded(signal);
    yield* this.#folders("images", signal);
    yield* this.#folders("bundles", signal);
    yield* this.#folders("templates", signal);
    yield* this.#give({ kind: "database", name: "database", paths: [DATABASE] });
    yield* this.#smallFiles(signal);
    yield* this.#certificates(signal);
  }

  /** Everything that the database speaks of. At the end, the stage has a database that speaks of nothing else. */
  async *#recorded(signal: AbortSignal): AsyncGenerator<Piece, void> {
    let missing: string[] = [];
    for (let round = 1; round <= MOST_ROUNDS; round += 1) {
      const known = round === MOST_ROUNDS ? this.#known() : undefined;
      yield* this.#machines(signal);
      yield* this.#volumes(signal);
      missing = await this.#database(known);
      if (missing.length === 0) return;
      signal.throwIfAborted();
    }
    throw new HibernautError(
      "aborted",
      `Machines or volumes kept changing while they were backed up (${missing.slice(0, 3).join(", ")}). Wait until deploys are over, then back up again.`,
    );
  }

  async *#machines(signal: AbortSignal): AsyncGenerator<Piece, void> {
    const { machineCopies } = this.#parts;
    const included = this.#included.machines;
    // Sending takes long, and those that are made meanwhile wait for the next round: else there might be no end.
    const left = machineCopies.ids().filter((id) => !included.has(id));
    this.#report({ machines: included.size + left.length, machinesDone: included.size });
    for (const id of left) {
      await this.#prepare(id, signal);
      for (const copier of this.#lends ? [this.#stage.lending, this.#stage] : [this.#stage]) {
        const copy = await machineCopies.copy(id, copier, signal);
        // One that was destroyed is not in the database at the end, either.
        included.set(id, copy?.record.version ?? "");
        if (copy === undefined) break;
        try {
          yield* this.#machine(copy);
        } finally {
          copy.lent?.release();
        }
        if (copy.lent?.changed.signal.aborted !== true) break;
      }
    }
  }

  async #prepare(id: string, signal: AbortSignal): Promise<void> {
    const failed = await this.#commands?.before(id, signal);
    if (failed === undefined) return;
    if (this.#failedCommands.length >= MOST_FAILED) return;
    this.#failedCommands.push(failed);
    this.#report({ failedCommands: [...this.#failedCommands] });
  }

  #known(): Known {
    const { machineCopies, store } = this.#parts;
    const volumes = store.volumes.list().map(({ id }) => id);
    const snapshots = volumes.flatMap((volume) => store.volumes.listSnapshots(volume).map(({ id }) => id));
    return {
      machines: new Set(machineCopies.ids()),
      volumes: new Set(volumes),
      volumeSnapshots: new Set(snapshots),
    };
  }

  async *#machine(copy: MachineCopy): AsyncGenerator<Piece, void> {
    const { record, volumes, pausedMs, withoutMemory: reason, lent } = copy;
    const { id, app } = record;
    // A machine that never ran has no files.
    await mkdir(join(this.#stage.folder, "machines", id), { recursive: true, mode: 0o700 });
    this.#copies.set(id, copy);
    for (const volume of volumes) this.#included.volumes.add(volume);
    this.#longestPauseMs = Math.max(this.#longestPauseMs, pausedMs);
    // It may have been copied before.
    this.#withoutMemory.delete(id);
    if (reason !== null) this.#withoutMemory.set(id, { id, app, reason });
    this.#report({
      machinesDone: this.#included.machines.size,
      longestPauseMs: this.#longestPauseMs,
      withoutMemory: [...this.#withoutMemory.values()],
    });
    const paths = [join("machines", id), ...volumes.map((volume) => join("volumes", volume))];
    const piece = { kind: "machine" as const, name: `machine-${id}`, app, machine: id, volumes, paths };
    yield* this.#give({ ...piece, ...(lent && { lent: lent.changed }) });
  }

  /** The volumes that no machine has, and the snapshots of all. */
  async *#volumes(signal: AbortSignal): AsyncGenerator<Piece, void> {
    const { store, volumes } = this.#parts;
    for (const { id, app } of store.volumes.list()) {
      const folder = join("volumes", id);
      if (!this.#included.volumes.has(id)) yield* this.#unused(id, app, signal);
      for (const snapshot of store.volumes.listSnapshots(id)) {
        if (snapshot.state !== "created" || this.#included.volumeSnapshots.has(snapshot.id)) continue;
        if (!(await this.#stage.link(volumes.snapshotFile(snapshot), signal))) continue;
        this.#included.volumeSnapshots.add(snapshot.id);
        const name = `snapshot-${snapshot.id}`;
        yield* this.#give({ kind: "snapshot", name, app, volumes: [id], paths: [folder], immutable: true });
      }
    }
  }

  /** A volume that no machine has. A lent one that gets a machine is written to, which is seen at the end. */
  async *#unused(id: string, app: string, signal: AbortSignal): AsyncGenerator<Piece, void> {
    const stage = this.#stage;
    const piece = { kind: "volume" as const, name: `volume-${id}`, app, volumes: [id], paths: [join("volumes", id)] };
    const lend = (disk: string) => stage.lending.lend(disk, signal);
    const copy = (disk: string) => stage.copyFile(disk, stage.pathOf(disk), signal);
    for (const way of this.#lends ? [lend, copy] : [copy]) {
      if (!(await this.#parts.volumes.whileUnused(id, way))) return;
      this.#included.volumes.add(id);
      const lent = way === lend ? new AbortController() : undefined;
      yield* this.#give({ ...piece, ...(lent && { lent }) });
      if (lent?.signal.aborted !== true) return;
      this.#included.volumes.delete(id);
    }
  }

  /**
   * Images, guest bundles and templates: directories that never change and that appear and disappear as a whole. Those that
   * machines in the database have are still there, because unused ones are kept for hours. One that is gone is gone here, too,
   * and so is a template that was deleted meanwhile: the restored platform says so when a machine is to be made from it.
   */
  async *#folders(parent: keyof typeof NAMES, signal: AbortSignal): AsyncGenerator<Piece, void> {
    const root = join(this.#parts.dataDir, parent);
    const kind = KINDS[parent];
    for (const name of await readdir(root).catch((): string[] => [])) {
      const wanted = NAMES[parent].test(name);
      const path = join(parent, name);
      if (wanted && (await this.#stage.linkAll(join(root, name), signal)))
        yield* this.#give({ kind, name: `${kind}-${name}`, paths: [path], immutable: true });
      await this.#stage.drop([path]);
    }
  }

  /**
   * Copies the database. Returns what it speaks of that has to be copied first; if nothing, the copy fits what was sent. What was
   * made since `known` is removed from it.
   */
  async #database(known?: Known): Promise<string[]> {
    const { store, openStore } = this.#parts;
    await this.#stage.drop([DATABASE, `${DATABASE}-wal`, `${DATABASE}-shm`]);
    const file = join(this.#stage.folder, DATABASE);
    await store.copyTo(file);
    const copy = openStore(file);
    try {
      if (known !== undefined)
        leaveOut(copy, madeSince(known, this.#included, recordedIn(copy)), new Date().toISOString());
      const recorded = recordedIn(copy);
      const { machines } = recorded;
      const missing = missingFrom(this.#included, recorded);
      for (const { id, version } of machines)
        if (this.#included.machines.get(id) !== version) this.#included.machines.delete(id);
      if (missing.length > 0) return missing;
      for (const machine of machines) {
        const { record, event } = this.#copies.get(machine.id) as MachineCopy;
        if (event === undefined && isDeepStrictEqual(record, machine)) continue;
        copy.machines.update(record, event, { unsynced: true });
        // Everything else that the platform does waits for each.
        await setImmediate();
      }
      return [];
    } finally {
      copy.close();
    }
  }

  async *#smallFiles(signal: AbortSignal): AsyncGenerator<Piece, void> {
    const present: string[] = [];
    const found = new Set(await readdir(this.#parts.dataDir));
    for (const name of SMALL_FILES.filter((each) => found.has(each))) {
      const from = join(this.#parts.dataDir, name);
      await this.#stage.copyFile(from, this.#stage.pathOf(from), signal);
      present.push(name);
    }
    if (present.length > 0) yield* this.#give({ kind: "files", name: "files", paths: present });
  }

  /** Managed certificates and the accounts that they come from. One that is replaced meanwhile is still whole. */
  async *#certificates(signal: AbortSignal): AsyncGenerator<Piece, void> {
    const folder = certificatesFolder(this.#parts.dataDir);
    const names = (await readdir(folder).catch((): string[] => [])).filter((name) => !name.endsWith(".tmp"));
    const paths: string[] = [];
    for (const name of names) {
      const from = join(folder, name);
      if (await this.#stage.link(from, signal)) paths.push(relative(this.#parts.dataDir, from));
    }
    if (paths.length > 0) yield* this.#give({ kind: "certificates", name: "certificates", paths, immutable: true });
  }

  /** Yields a piece, and deletes it from the stage when it was used. */
  async *#give(part: Part): AsyncGenerator<Piece, void> {
    yield this.#piece(part);
    await this.#stage.drop(part.paths);
  }

  #piece(part: Part): Piece {
    return { volumes: [], immutable: false, ...part, folder: this.#stage.folder };
  }
}

function recordedIn(copy: Pick<Store, "machines" | "volumes">): Recorded {
  const volumes = copy.volumes.list();
  const volumeSnapshots = volumes.flatMap(({ id }) => copy.volumes.listSnapshots(id));
  return { machines: copy.machines.list(), volumes, volumeSnapshots };
}
