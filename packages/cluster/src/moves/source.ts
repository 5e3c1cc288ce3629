/** Moves machines of this host to other hosts. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { volumesOf } from "@hibernaut/domain/mounts";
import { nextEpoch } from "@hibernaut/domain/volume";
import { messageOf } from "@hibernaut/lib/text";
import {
  type Departed,
  type DepartOptions,
  newUlid,
  type Resources,
  refuseUnfit,
  type VolumeElsewhere,
} from "@hibernaut/machines";
import type { VolumePapers, VolumeTravel } from "@hibernaut/volumes";
import type { Cluster } from "../cluster.ts";
import { KEYS, type MoveRecord, nameOf } from "../keys.ts";
import { find, wasDestroyed } from "../ownership/claims.ts";
import type { OpenOwnership } from "../ownership/open.ts";
import { type Log, untilDone } from "../ownership/retry.ts";
import { readVolumesElsewhere } from "../ownership/volumes.ts";
import type { PeerCall } from "../peer-call.ts";
import { announce, callOff } from "./intent.ts";
import { memoryOf } from "./pack.ts";
import type { Fit, FitPapers } from "./papers.ts";
import type { Rate } from "./rate.ts";
import {
  beingMoved,
  forgotten,
  requireNoVolumes,
  requireTarget,
  takenMeanwhile,
  unsettled,
  volumesUnfit,
} from "./refusals.ts";
import { Shipment } from "./shipment.ts";
import { StepTimes } from "./step-times.ts";

/**
 * How far a move is. `precopy` sends the memory while the machine may still run, `copy` what has changed since, and all other
 * files. `bytes` of `totalBytes` have been read in this step; the total is an estimate.
 */
export interface MoveProgress {
  step: "check" | "precopy" | "suspend" | "copy" | "commit" | "done";
  bytes: number;
  totalBytes: number;
}

export interface MoveOptions extends DepartOptions {
  /** The machine takes its volumes along. Default: a machine with volumes is not moved. */
  withVolumes?: boolean;
  onProgress?(progress: MoveProgress): void;
}

type Tell = (step: MoveProgress["step"], bytes?: number, totalBytes?: number) => void;

interface SourceOptions {
  cluster: Cluster;
  call: PeerCall;
  departures: Resources["departures"];
  custody: Resources["custody"];
  volumes: VolumeTravel;
  ownership: OpenOwnership;
  folderOf(id: string): string;
  /** Takes in a machine that came back to this host before it was known that it had left. */
  takeIn(id: string): Promise<unknown>;
  /** How fast machines leave this host, all together. */
  rate: Rate;
  log: Log;
  closing: AbortSignal;
}

export class MoveSource {
  readonly #options: SourceOptions;
  /** The host that each machine is being moved to. */
  readonly #moving = new Map<string, string>();

  constructor(options: SourceOptions) {
    this.#options = options;
  }

  /**
   * Moves a machine. Rejects with `failed_precondition` before anything is copied when it would not fit there, and with what
   * went wrong otherwise; the machine is on this host then, as it was.
   */
  async move(id: string, options: MoveOptions, given: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([given, this.#options.closing]);
    const { to, cold, withVolumes = false } = options;
    const { cluster, call, departures, custody, ownership, volumes } = this.#options;
    const underWay = this.#moving.get(id);
    if (underWay !== undefined) throw beingMoved(id, underWay);
    using moving = new DisposableStack();
    this.#moving.set(id, to);
    moving.defer(() => void this.#moving.delete(id));
    const times = new StepTimes<MoveProgress["step"]>();
    const tell: Tell = (step, bytes = 0, totalBytes = 0) => {
      times.begin(step);
      options.onProgress?.({ step, bytes, totalBytes });
    };
    tell("check");
    const { record: before } = await this.#requireFit(id, { to, cold, withVolumes }, signal);
    using shipment = this.#begin(before, { to, cold, tell }, signal);
    await shipment.precopied;
    tell("suspend");
    ownership.departing.add(id);
    let gone: Departed;
    let owner: NewOwner | undefined;
    using held = new DisposableStack();
    try {
      const carry = async (record: MachineRecord) => {
        held.use(await volumes.hold(volumesOf(record), signal));
        // It may have another image or another volume by now, and the other host may be draining.
        const fitting = await this.#requireFit(id, { to, cold, withVolumes }, signal);
        owner = await this.#carry(record, { to, tell, volumes: fitting.volumes, shipment });
      };
      gone = await departures.depart(id, { to, cold }, carry, AbortSignal.any([signal, shipment.broken]));
      await this.#giveUp(id, { to, owner });
    } finally {
      ownership.departing.delete(id);
      // What happened to it meanwhile was not looked at; and what the directory still gives to this host is given back.
      if (custody.stores(id) || owner?.isUnknown === true) ownership.look(id);
    }
    if (owner?.host === cluster.host) await this.#options.takeIn(id);
    if (!arrived(owner, to)) throw takenMeanwhile(id, owner?.host);
    // Any proxy wakes it there; this is for what asked for it here.
    if (gone.start)
      await call(to, `/moves/${id}/start`, { json: {} }, signal).catch((error: unknown) => {
        this.#options.log.warn({ machine: id, host: to, reason: messageOf(error) }, "a moved machine was not started");
      });
    tell("done");
    this.#options.log.info({ machine: id, host: to, ms: times.done() }, "a machine has moved to another host");
  }

  /** Calls off what a platform before this one was sending. Rejects while the directory does not answer. */
  async recover(): Promise<void> {
    const { cluster, ownership } = this.#options;
    const { host, directory } = cluster;
    const { entries } = await directory.list(KEYS.moves);
    for (const entry of entries) {
      const { from, epoch, attempt } = JSON.parse(entry.value) as MoveRecord;
      const id = nameOf(entry.key);
      if (from === host && !ownership.departing.has(id)) await callOff(id, { host, epoch, attempt }, directory);
    }
  }

  /**
   * The new owner has all the files, unless the machine was given to another one in the middle of the move. They are kept
   * here unless it said that it has them.
   */
  async #giveUp(id: string, { to, owner }: { to: string; owner: NewOwner | undefined }): Promise<void> {
    const { custody, cluster } = this.#options;
    const all = arrived(owner, to);
    const { host, epoch = 0, volumes = [], confirmed = false } = owner ?? {};
    const reason = all ? `it moved to host ${to}` : `host ${host ?? "none"} owns it now`;
    const elsewhere = host === cluster.host ? undefined : host;
    await custody.takeAway({ id, host: elsewhere, epoch, volumes, reason, keep: !all || !confirmed });
  }

  /** Resolves with the machine's new owner. Rejects when it is still this host's, as it was. */
  async #carry(
    record: MachineRecord,
    { to, tell, volumes, shipment }: { to: string; tell: Tell; volumes: VolumePapers[]; shipment: Shipment },
  ): Promise<NewOwner> {
    const { cluster, ownership, closing, custody, log } = this.#options;
    const { gate } = ownership;
    const { host, directory } = cluster;
    const { id } = record;
    const attempt = newUlid();
    const intent = { from: host, to, attempt, startedAt: new Date().toISOString() };
    const epoch = await announce(id, intent, directory);
    // From now on it may become the other host's at any time.
    gate.remove(id);
    tell("copy");
    let failure: Error | undefined;
    try {
      await shipment.send({ record, epoch, attempt, history: custody.history(id), volumes });
    } catch (error) {
      failure = error as Error;
    }
    // What the other host said, or did not say, proves nothing: the directory knows.
    let owner: Awaited<ReturnType<typeof callOff>>;
    let isLost = false;
    let known = false;
    let gone: VolumeElsewhere[] = [];
    const resolve = async () => {
      owner = await callOff(id, { host, epoch, attempt }, directory);
      gone = await readVolumesElsewhere(record, host, directory);
      isLost = owner === undefined && !wasDestroyed(epoch, await find(id, directory), host);
      known = true;
    };
    await untilDone(resolve, { what: `the outcome of the move of machine ${id}`, log, signal: closing });
    // Whose it is will be known at the next start. Until then it must not run here.
    if (!known) throw unsettled(id, to, closing.reason);
    const isMine = owner?.host === host && owner.epoch === epoch;
    // The other host says so only after the commit. A directory that does not know it was restored from a backup since.
    const sent = volumes.map(({ volume }) => ({ id: volume.id, epoch: nextEpoch(volume) }));
    if ((isLost || isMine) && failure === undefined)
      return { host: to, epoch: epoch + 1, volumes: sent, sent: epoch, confirmed: true, isUnknown: true };
    // Nobody can say whose it is: what is here is kept, and claimed again.
    if (isLost) throw forgotten(id, to);
    if (isMine && failure !== undefined) {
      gate.add(id, epoch);
      throw failure;
    }
    // It may have come back in the meantime, with another epoch: what is here is old then.
    return {
      ...{ host: owner?.host, epoch: owner?.epoch ?? 0, volumes: gone },
      ...{ sent: epoch, confirmed: failure === undefined },
    };
  }

  /** Resolves with what the other host was asked to take. Rejects with why it does not. */
  async #requireFit(
    id: string,
    { to, cold, withVolumes }: { to: string; cold: boolean; withVolumes: boolean },
    signal: AbortSignal,
  ): Promise<FitPapers> {
    const { cluster, call, departures, volumes } = this.#options;
    requireTarget(to, cluster);
    const papers = await departures.papers(id, { cold });
    const fitPapers: FitPapers = { ...papers, volumes: await volumes.papers(papers.record) };
    if (!withVolumes) requireNoVolumes(id, fitPapers.volumes);
    const fit = (await call(to, `/moves/${id}/fit`, { json: fitPapers }, signal)) as Fit;
    if (fit.unfitVolumes !== undefined) throw volumesUnfit(id, to, fit.unfitVolumes);
    if (fit.unfit !== undefined) refuseUnfit(id, to, fit.unfit, { cold });
    return fitPapers;
  }

  #begin(
    record: MachineRecord,
    { to, cold, tell }: { to: string; cold: boolean; tell: Tell },
    signal: AbortSignal,
  ): Shipment {
    const { call, cluster, folderOf, volumes, rate, log } = this.#options;
    const { id, state } = record;
    const present = state === "running" ? "memory" : memoryOf(record);
    const memory = cold ? undefined : present;
    const folder = folderOf(id);
    return new Shipment({ id, to, from: cluster.host, call, folder, memory, volumes, rate, log, tell }, signal);
  }
}

interface NewOwner {
  /** Undefined when the machine was destroyed meanwhile. */
  host: string | undefined;
  epoch: number;
  /** Of its volumes that are stored here, those that are another host's, too. */
  volumes: VolumeElsewhere[];
  /** The epoch of what was sent. */
  sent: number;
  /** The other host said that it has all of it. */
  confirmed: boolean;
  /** The directory does not know. */
  isUnknown?: boolean;
}

/** Whether the move was what changed the owner: everything has arrived then. */
function arrived(owner: NewOwner | undefined, to: string): boolean {
  return owner?.host === to && owner.epoch === owner.sent + 1;
}
