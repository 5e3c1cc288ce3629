/**
 * Takes machines that other hosts send. A machine that arrives is put together in a directory of its own, named by its id
 * and its new epoch. Once it is whole and on the disk, one transaction makes it this host's, and only then it is moved to its
 * place. A platform that ends in between finds the directory at its next start, and the cluster says what it is.
 */
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { type MachineRecord, mayTravel } from "@hibernaut/domain/machine";
import { nextEpoch } from "@hibernaut/domain/volume";
import { replaceFile } from "@hibernaut/lib/durable";
import { newUlid, type Resources } from "@hibernaut/machines";
import type { VolumeTravel } from "@hibernaut/volumes";
import type { Cluster } from "../cluster.ts";
import { find } from "../ownership/claims.ts";
import type { HasCopy } from "../ownership/drop.ts";
import type { StartGate } from "../ownership/gate.ts";
import type { Log } from "../ownership/retry.ts";
import { ArrivingMemory, type SentMemory } from "./arriving-memory.ts";
import { FRAMES, type Frame, framesOf } from "./frames.ts";
import { callOff, commit } from "./intent.ts";
import { filesOf, flushAll, memoryOf, unpack } from "./pack.ts";
import { type Fit, type FitPapers, PAPERS_FILE, readPapers, type TravelPapers } from "./papers.ts";
import { disputedHere, notStored, notWhole } from "./refusals.ts";
import { StepTimes } from "./step-times.ts";

const FILES_FOLDER = "files";
/** How the names of directories begin that have the memory of machines that still run on their host. */
const AHEAD = "ahead-";

/** What the last frame says. */
interface End {
  /** How many files the machine and its volumes have. */
  files: number;
  memory?: SentMemory | undefined;
}

interface TargetOptions {
  cluster: Cluster;
  arrivals: Resources["arrivals"];
  volumes: VolumeTravel;
  custody: Resources["custody"];
  gate: StartGate;
  log: Log;
  /** Where machines are put together. */
  folder: string;
}

export class MoveTarget {
  readonly #options: TargetOptions;
  /** Machines that arrive, or are taken in, at the moment: one thing at a time for each. */
  readonly #busy = new Map<string, Promise<unknown>>();
  /** Names of directories with memory that arrives. */
  readonly #ahead = new Set<string>();

  constructor(options: TargetOptions) {
    this.#options = options;
  }

  /** Why the machine cannot come, or why its volumes cannot. */
  async fit({ volumes, ...papers }: FitPapers): Promise<Fit> {
    this.#requireUndisputed(papers.record.id);
    const unfitVolumes = await this.#options.volumes.unfit(volumes);
    if (unfitVolumes !== undefined) return { unfitVolumes };
    const unfit = await this.#options.arrivals.unfit(papers);
    return unfit === undefined ? {} : { unfit };
  }

  /**
   * Whether a machine is here to stay: not while it is being destroyed, or created, which may come to nothing. And which of
   * these volumes are here.
   */
  has(id: string, volumes: readonly string[] = []): HasCopy {
    const record = this.#options.custody.record(id);
    const stores = record !== undefined && record.state !== "destroying";
    return { stores, volumes: volumes.filter((volume) => this.#options.volumes.has(volume)) };
  }

  /** Starts a machine that came. */
  start(id: string): void {
    this.#options.custody.start(id);
  }

  /** Receives a machine and makes it this host's. Rejects with why it is not, and leaves nothing behind then. */
  async receive(id: string, stream: AsyncIterable<Buffer>, signal: AbortSignal): Promise<void> {
    const frames = framesOf(stream);
    const name = `${AHEAD}${newUlid()}`;
    this.#ahead.add(name);
    try {
      const { cluster, folder } = this.#options;
      await using memory = new ArrivingMemory(join(folder, name), {
        notStored: (error) => notStored(id, cluster.host, error),
        notWhole: (what) => notWhole(id, what),
      });
      const papers = papersOf(id, await memory.takeFrom(frames));
      await this.#alone(id, () => this.#complete(papers, { frames, memory }, signal));
    } finally {
      this.#ahead.delete(name);
    }
  }

  /** Receives what is left of a machine once it rests. */
  async #complete(
    papers: TravelPapers,
    { frames, memory }: { frames: AsyncGenerator<Frame, void>; memory: ArrivingMemory },
    signal: AbortSignal,
  ): Promise<void> {
    const { record, epoch, from, attempt, volumes } = papers;
    const { id } = record;
    const { cluster, arrivals, gate, log, volumes: travel } = this.#options;
    const folder = this.#folderOf(id, epoch + 1);
    const files = join(folder, FILES_FOLDER);
    const times = new StepTimes<"receive" | "flush" | "check" | "commit" | "place">();
    try {
      times.begin("receive");
      await rm(folder, { recursive: true, force: true });
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const first = await memory.takeFrom(frames);
      const end: End = { files: 0 };
      await unpack(files, data(first, { frames, end }), signal);
      const place = memoryOf(record);
      if (end.memory !== undefined && place !== undefined) await memory.place(end.memory, join(files, place));
      times.begin("flush");
      await flushAll(files);
      times.begin("check");
      await requireWhole(files, { record, files: end.files });
      await travel.requireWhole(files, volumes);
      const unfit = await arrivals.unfit({ record, taken: null });
      if (unfit !== undefined) throw new HibernautError("failed_precondition", `It does not fit: ${unfit}.`);
      await replaceFile(join(folder, PAPERS_FILE), JSON.stringify(papers), { mode: 0o600 });
      signal.throwIfAborted();
      const coming = volumes.map(({ volume }) => ({ id: volume.id, epoch: nextEpoch(volume) }));
      this.#requireUndisputed(id);
      if (this.#options.custody.stores(id) || coming.some((volume) => travel.has(volume.id)))
        throw stillHere(id, cluster.host);
      times.begin("commit");
      const done = await commit(id, { from, to: cluster.host, epoch, attempt, volumes: coming }, cluster.directory);
      if (!done) throw new HibernautError("aborted", `The move of machine ${id} was called off.`, { machine_id: id });
    } catch (error) {
      await this.#giveUp(id, { epoch, attempt });
      throw error;
    }
    gate.add(id, epoch + 1);
    times.begin("place");
    await this.#takeIn(id, papers);
    log.info({ machine: id, host: from, ms: times.done() }, "a machine has come from another host");
  }

  /** Takes in a machine that is this host's and whose files have arrived. Resolves with false when they have not. */
  takeIn(id: string): Promise<boolean> {
    return this.#alone(id, async () => {
      const { custody, cluster } = this.#options;
      const { owner } = await find(id, cluster.directory);
      if (owner?.host !== cluster.host || this.#has(id, owner.epoch)) return true;
      const papers = await readPapers(this.#folderOf(id, owner.epoch));
      if (papers === undefined) return custody.stores(id);
      await this.#takeIn(id, papers);
      return true;
    });
  }

  /** Decides about what a platform before this one was receiving. Rejects while the directory does not answer. */
  async recover(): Promise<void> {
    const names = await readdir(this.#options.folder).catch((): string[] => []);
    for (const name of names) {
      if (name.startsWith(AHEAD)) {
        if (!this.#ahead.has(name)) await rm(join(this.#options.folder, name), { recursive: true, force: true });
        continue;
      }
      const [id = "", epoch = ""] = name.split("-");
      await this.#alone(id, () => this.#giveUp(id, { epoch: Number(epoch) - 1 }));
    }
  }

  /** Deletes what has arrived, unless it is this host's: then it is taken in. After that no commit can happen any more. */
  async #giveUp(id: string, { epoch, attempt: given }: { epoch: number; attempt?: string }): Promise<void> {
    const { cluster, arrivals } = this.#options;
    const folder = this.#folderOf(id, epoch + 1);
    const papers = await readPapers(folder);
    const attempt = given ?? papers?.attempt;
    const owner = await callOff(id, { host: cluster.host, epoch, attempt }, cluster.directory);
    if (owner?.host === cluster.host && owner.epoch === epoch + 1 && papers !== undefined)
      return this.#takeIn(id, papers);
    // It was this host's, and was given to another one before it was taken in: nobody else has these files.
    if (owner !== undefined && owner.epoch > epoch + 1 && papers !== undefined && !this.#has(id, epoch + 1))
      await arrivals.keep(id, epoch + 1, join(folder, FILES_FOLDER));
    await rm(folder, { recursive: true, force: true });
  }

  /** Whether the machine is stored here as what it was at this epoch, or later. */
  #has(id: string, epoch: number): boolean {
    const stored = this.#options.custody.epochOf(id);
    return stored !== undefined && stored >= epoch;
  }

  async #takeIn(id: string, papers: TravelPapers): Promise<void> {
    const { custody, arrivals, volumes: travel } = this.#options;
    const epoch = papers.epoch + 1;
    const folder = this.#folderOf(id, epoch);
    const { volumes } = papers;
    if (!this.#has(id, epoch)) {
      if (custody.stores(id)) {
        const reason = "it came back to this host, and this is an older copy";
        // What has arrived takes the place of whatever is here.
        const older = volumes
          .map(({ volume }) => ({ id: volume.id, epoch: Number.POSITIVE_INFINITY }))
          .filter((each) => travel.has(each.id));
        await custody.takeAway({ id, host: undefined, epoch, volumes: older, reason, keep: true });
      }
      const files = join(folder, FILES_FOLDER);
      // Out of the directory that becomes the machine's own.
      await travel.place(files, volumes);
      await arrivals.place(id, files);
      const record = arrivals.adapted({ ...papers.record, epoch }, newUlid());
      const { from, history } = papers;
      custody.takeIn({ record, event: "moved_in", details: { from, epoch }, start: false, history, volumes });
      arrivals.seal(record);
    }
    await rm(folder, { recursive: true, force: true });
  }

  /** Throws `failed_precondition` while another copy of the machine is kept here, which nobody gives up by itself. */
  #requireUndisputed(id: string): void {
    const { custody, cluster } = this.#options;
    if (custody.record(id)?.disputed === true) throw disputedHere(id, cluster.host);
  }

  #folderOf(id: string, epoch: number): string {
    return join(this.#options.folder, `${id}-${epoch}`);
  }

  async #alone<T>(id: string, work: () => Promise<T>): Promise<T> {
    const before = this.#busy.get(id) ?? Promise.resolve();
    const mine = before.then(work, work);
    const settled = mine.catch(() => {});
    this.#busy.set(id, settled);
    try {
      return await mine;
    } finally {
      if (this.#busy.get(id) === settled) this.#busy.delete(id);
    }
  }
}

function stillHere(id: string, host: string): HibernautError {
  const message = `Host ${host} still has an older copy of machine ${id}, which it is giving up. Try again in a minute.`;
  return new HibernautError("aborted", message, { machine_id: id, host });
}

/** Its files were copied while they changed, and here it would be in a state that nothing ends. */
function notAtRest({ id, state }: MachineRecord, from: string): HibernautError {
  const message = `Machine ${id} was sent while it was ${state}, and stays on host ${from}. Try again; if that does not help, look at the log of host ${from}.`;
  return new HibernautError("failed_precondition", message, { machine_id: id, state });
}

function papersOf(id: string, { value }: IteratorResult<Frame, void>): TravelPapers {
  if (value === undefined || value.type !== FRAMES.papers) throw new Error("a machine came without papers");
  const papers = JSON.parse(value.payload.toString("utf8")) as TravelPapers;
  if (papers.record.id !== id) throw new Error("these are the papers of another machine");
  if (!mayTravel(papers.record)) throw notAtRest(papers.record, papers.from);
  return papers;
}

/** The parts of the archive, the first of which was read already. Throws unless the stream ends with the end, which goes to `end`. */
async function* data(
  first: IteratorResult<Frame, void>,
  { frames, end }: { frames: AsyncIterator<Frame, void>; end: End },
): AsyncGenerator<Buffer, void> {
  for (let next = first; next.done !== true; next = await frames.next()) {
    const { type, payload } = next.value;
    if (type === FRAMES.end) return void Object.assign(end, JSON.parse(payload.toString("utf8")) as End);
    yield payload;
  }
  throw new Error("the stream ended before the machine was whole");
}

/** Throws when what has arrived is not what was sent: the commit would make the other host delete the only whole copy. */
async function requireWhole(
  folder: string,
  { record, files }: { record: MachineRecord; files: number },
): Promise<void> {
  const { paths } = await filesOf(folder, record);
  const { id, snapshot } = record;
  const manifest = snapshot && `snapshots/${snapshot.generation}/manifest.json`;
  if (paths.length === files && (manifest === null || paths.includes(manifest))) return;
  const what =
    paths.length === files ? "its snapshot has no manifest" : `${paths.length} of its ${files} files have arrived`;
  throw notWhole(id, what);
}
