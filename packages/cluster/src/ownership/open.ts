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
  /** What waits for the directory is left to the next start of the platform. */
  close(): void;
}

export function openOwnership(cluster: Cluster, log: WarnLog): OpenOwnership {
  const gate = new StartGate(cluster);
  const disputes = new Disputes(log);
  const closing = new AbortController();
  const { signal } = closing;
  /** What other hosts know of. A configuration may change without a new version. */
  const published = new Map<string, Pick<MachineRecord, "version" | "config">>();
  const notePublished = ({ id, version, config }: MachineRecord) => void published.set(id, { version, config });
  const isPublished = ({ id, version, config }: MachineRecord) => {
    const known = published.get(id);
    return known?.version === version && known.config === config;
  };
  const departing = new Set<string>();
  let look: ((id: string) => void) | undefined;

  const untilReleased = (id: string, upTo?: number) => {
    gate.remove(id);
    disputes.end(id);
    published.delete(id);
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
      notePublished(claimed);
      return claimed;
    },
    release: ({ id, epoch }) => untilReleased(id, epoch),
    publish(record) {
      if (isPublished(record)) return;
      notePublished(record);
      const work = async () => {
        // A later one is written by its own call.
        if (isPublished(record)) await publishConfig(record, cluster);
      };
      background(
        untilDone(work, { what: `publishing the version of machine ${record.id}`, log, signal }),
        "publishing a machine's version",
      );
    },
    readdress: (record, another) => readdress(record, another, cluster),
    refusal: (id) => disputes.refusal(id) ?? gate.refusal(id),
    verify: async (id, limit) => disputes.refusal(id) ?? (await gate.verify(id, limit)),
    async settle(records, another) {
      const settled: Settled[] = await settle(records, { cluster, gate, log, another });
      for (const one of settled) {
        const { kind, record } = one;
        if (kind === "own") notePublished(record);
        if (kind === "unknown" && one.why !== undefined) disputes.begin(record.id, one.why);
      }
      return settled;
    },
    follow(custodian, takeIn) {
      look = follow({ cluster, gate, disputes, departing, custodian, log, signal, takeIn, untilReleased });
    },
    close: () => closing.abort(),
  };
}

/** Tells other hosts of a machine's version, as long as it is this host's. */
async function publishConfig(record: MachineRecord, { directory, host }: Cluster): Promise<void> {
  const owner = await read<OwnerRecord>(directory, `${KEYS.machines}${record.id}`);
  if (owner?.value.host !== host) return;
  const done = await directory.transact([owner], [put(`${KEYS.configs}${record.id}`, configOf(record))]);
  if (done === undefined) throw new Error("the machine changed hands meanwhile");
}
