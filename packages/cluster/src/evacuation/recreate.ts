/** Recreates machines that this host got because theirs was lost. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { background } from "@hibernaut/lib/background";
import type { Resources } from "@hibernaut/machines";
import type { Cluster } from "../cluster.ts";
import { type ConfigRecord, KEYS, type OwnerRecord } from "../keys.ts";
import { untilDone, type WarnLog } from "../ownership/retry.ts";
import { put, read } from "../stored.ts";

export interface Origin extends ConfigRecord {
  id: string;
  owner: OwnerRecord;
  lostHost: string;
}

interface RecreateOptions {
  cluster: Cluster;
  custody: Resources["custody"];
  /** Returns the record of a machine without any files, once its image is here. */
  anew(origin: Origin): Promise<MachineRecord>;
  log: WarnLog;
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
    const owner = (await read<OwnerRecord>(cluster.directory, `${KEYS.machines}${id}`))?.value;
    if (owner?.host !== cluster.host || owner.evacuated === undefined) return false;
    if (this.#busy.has(id)) return true;
    this.#busy.add(id);
    const what = `making machine ${id} of lost host ${owner.evacuated.from}`;
    const made = untilDone(() => this.#make(id), { what, log, signal: closing });
    background(
      made.finally(() => this.#busy.delete(id)),
      "making a machine of a lost host",
    );
    return true;
  }

  async #make(id: string): Promise<void> {
    const { cluster, custody, anew } = this.#options;
    const { directory, host } = cluster;
    const claimed = await read<OwnerRecord>(directory, `${KEYS.machines}${id}`);
    const config = await read<ConfigRecord>(directory, `${KEYS.configs}${id}`);
    // Moved on, or destroyed, before it was made.
    if (config === undefined || claimed?.value.host !== host || claimed.value.evacuated === undefined) return;
    const { evacuated, ...owner } = claimed.value;
    const { from, at, ran } = evacuated;
    if (!custody.stores(id)) {
      const record = await anew({ ...config.value, id, owner, lostHost: from });
      custody.takeIn({ record, event: "evacuated", details: { from, evacuated_at: at }, start: ran });
    }
    const noted = await directory.transact([claimed], [put(claimed.key, owner)]);
    if (noted === undefined) throw new Error("the machine changed hands meanwhile");
  }
}
