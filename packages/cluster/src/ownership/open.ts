/** This host's machines in a cluster: what it claims, gives back, may start, and has to end. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { VolumeRecord } from "@hibernaut/domain/volume";
import { background } from "@hibernaut/lib/background";
import type { Ownership, Settled } from "@hibernaut/machines";
import type { Cluster } from "../cluster.ts";
import { KEYS, type OwnerRecord } from "../keys.ts";
import { put, read } from "../stored.ts";
import { claim, configOf, readdress, release } from "./claims.ts";
import { Disputes } from "./disputes.ts";
import { type Custodian, follow, type TakeIn } from "./follow.ts";
import { StartGate } from "./gate.ts";
import { Publications } from "./publications.ts";
import { untilDone, type WarnLog } from "./retry.ts";
import { settle } from "./settle.ts";
import { forgetVolume, newerOn } from "./volumes.ts";

export interface OpenOwnership extends Ownership {
  readonly gate: StartGate;
  /** Machines of which it is not certain whose they are. */
  readonly disputes: Pick<Disputes, "list">;
  /** Machines that are being moved away: the move also gives them up. */
  readonly departing: Set<string>;
  /** The host that has a newer copy of a volume than this one, as far as this host has heard. */
  newerVolumeOn(volume: Pick<VolumeRecord, "app" | "id" | "epoch">): string | undefined;
  /** A volume was destroyed on this host. */
  volumeDestroyed(volume: Pick<VolumeRecord, "app" | "id">): void;
  /** Compares one machine with the cluster, if machines are followed already. */
  look(id: string): void;
  /** Gives up what other hosts take, from now on. Call it once machines are recovered. */
  follow(custodian: Custodian, takeIn?: TakeIn): void;
  /**
   * What waits for the directory is left to the next start of the platform, after configurations that others do not know yet
   * were written once more: see {@link published}.
   */
  close(): void;
  /** Resolves when no configuration is being published. After `close`, that is soon, unless the directory does not answer. */
  published(): Promise<void>;
}

export function openOwnership(cluster: Cluster, log: WarnLog): OpenOwnership {
  const gate = new StartGate(cluster);
  const disputes = new Disputes(log);
  const closing = new AbortController();
  const { signal } = closing;
  const publications = new Publications({
    write: (record) => publishConfig(record, cluster),
    isWritten: (record) => isWritten(record, cluster),
    ...{ log, signal },
  });
  const departing = new Set<string>();
  let look: ((id: string) => void) | undefined;

  const untilReleased = (id: string, upTo?: number) => {
    gate.remove(id);
    disputes.end(id);
    publications.forget(id);
    const work = async () => void (await release(id, cluster, upTo));
    background(untilDone(work, { what: `giving back machine ${id}`, log, signal }), "giving back a machine");
  };
  return {
    gate,
    disputes,
    departing,
    look: (id) => look?.(id),
    newerVolumeOn: (volume) => newerOn(volume, cluster.host, (key) => cluster.view.value(key)),
    volumeDestroyed: (volume) =>
      background(
        untilDone(() => forgetVolume(volume, cluster), { what: `forgetting volume ${volume.id}`, log, signal }),
        "forgetting a volume",
      ),
    addresses: () => cluster.view.machines().map(({ address }) => address),
    async claim(record, another) {
      const claimed = await claim(record, another, cluster);
      gate.add(claimed.id, claimed.epoch ?? 0);
      publications.known(claimed);
      return claimed;
    },
    release: ({ id, epoch }) => untilReleased(id, epoch),
    publish: (record) => publications.publish(record),
    readdress: (record, another) => readdress(record, another, cluster),
    refusal: (id) => disputes.refusal(id) ?? gate.refusal(id),
    verify: async (id, limit) => disputes.refusal(id) ?? (await gate.verify(id, limit)),
    async settle(records, another) {
      const settled: Settled[] = await settle(records, { cluster, gate, log, another });
      for (const one of settled) {
        if (one.kind === "unknown" && one.why !== undefined) disputes.begin(one.record.id, one.why);
      }
      return settled;
    },
    follow(custodian, takeIn) {
      const parts = { cluster, gate, disputes, departing, publications, custodian, log, signal };
      look = follow({ ...parts, takeIn, untilReleased });
    },
    close: () => closing.abort(),
    published: () => publications.idle(),
  };
}

/** Tells other hosts of a machine's configuration. Resolves with false when it is not this host's. */
async function publishConfig(record: MachineRecord, { directory, host }: Cluster): Promise<boolean> {
  const owner = await read<OwnerRecord>(directory, `${KEYS.machines}${record.id}`);
  if (owner?.value.host !== host) return false;
  const done = await directory.transact([owner], [put(configKey(record), configOf(record))]);
  if (done === undefined) throw new Error("the machine changed hands meanwhile");
  return true;
}

/**
 * Whether the directory has the machine's configuration, as far as this host has heard. With the machine's own epoch there,
 * the copy is not older than what the host before it wrote.
 */
function isWritten(record: MachineRecord, { view, host }: Cluster): boolean {
  const owner = view.owner(record.id);
  if (owner?.host !== host || owner.epoch !== record.epoch) return false;
  return JSON.stringify(view.value(configKey(record))) === JSON.stringify(configOf(record));
}

function configKey({ id }: Pick<MachineRecord, "id">): string {
  return `${KEYS.configs}${id}`;
}
