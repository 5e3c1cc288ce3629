/** Recreates machines that this host got because theirs was lost. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { background } from "@hibernaut/lib/background";
import type { TakenIn } from "@hibernaut/machines";
import type { Cluster } from "../cluster.ts";
import type { OwnerRecord } from "../keys.ts";
import { type ConfigRecord, KEYS } from "../keys.ts";
import { ownerOf, put } from "../ownership/claims.ts";
import { untilDone, type WarnLog } from "../ownership/retry.ts";

/** What a machine is made from. */
export interface Origin extends ConfigRecord {
  id: string;
  owner: OwnerRecord;
  /** The host that was lost. */
  lostHost: string;
}

interface RecreateOptions {
  cluster: Cluster;
  custody: { takeIn(taken: TakenIn): void; stores(id: string): boolean };
  /** Returns the record of a machine without any files, once its image is here. */
  anew(origin: Origin): Promise<MachineRecord>;
  log: WarnLog;
  /** The platform ends. */
  closing: AbortSignal;
}

export class Recreation {
  readonly #options: RecreateOptions;
  readonly #busy = new Set<string>();

  constructor(options: RecreateOptions) {
    this.#options = options;
  }

  /**
   * Recreates the machine if it was given to this host without its files, however often that has to be tried. Resolves with
   * false if it was not; otherwise at once.
   */
  async takeIn(id: string): Promise<boolean> {
    const { cluster, log, closing } = this.#options;
    const entry = await cluster.directory.get(`${KEYS.machines}${id}`);
    const owner = entry && ownerOf(entry);
    if (owner?.host !== cluster.host || owner.evacuated === undefined) return false;
    if (this.#busy.has(id)) return true;
    this.#busy.add(id);
    const work = () => this.#make(id);
    background(
      untilDone(work, {
        what: `making machine ${id} of lost host ${owner.evacuated.from}`,
        log,
        signal: closing,
      }).finally(() => this.#busy.delete(id)),
      "making a machine of a lost host",
    );
    return true;
  }

  async #make(id: string): Promise<void> {
    const { cluster, custody, anew } = this.#options;
    const { directory, host } = cluster;
    const entry = await directory.get(`${KEYS.machines}${id}`);
    const config = await directory.get(`${KEYS.configs}${id}`);
    const owner = entry && ownerOf(entry);
    // Moved on, or destroyed, before it was made.
    if (entry === undefined || config === undefined || owner?.host !== host || owner.evacuated === undefined) return;
    const { from, at, ran } = owner.evacuated;
    if (!custody.stores(id)) {
      const origin = {
        ...(JSON.parse(config.value) as ConfigRecord),
        id,
        owner,
        lostHost: from,
      };
      const record = await anew(origin);
      custody.takeIn({ record, event: "evacuated", details: { from, evacuated_at: at }, start: ran });
    }
    const { evacuated: _done, ...plain } = owner;
    const unchanged = [{ key: entry.key, revision: entry.revision }];
    const noted = await directory.transact(unchanged, [put(entry.key, plain)]);
    if (noted === undefined) throw new Error("the machine changed hands meanwhile");
  }
}
