/** Gives up machines as soon as this host hears that they are another host's, and takes in those that it got. */
import { messageOf } from "../../lib/text.ts";
import type { MachineRecord } from "../../domain/machine.ts";
import type { Cluster } from "../cluster.ts";
import type { Changed } from "../contract.ts";
import { KEYS, nameOf, type OwnerRecord } from "../keys.ts";
import type { Owners, StartGate } from "./gate.ts";
import type { Custodian, TakeIn } from "./custodian.ts";
import { untilDone, type WarnLog } from "./retry.ts";
import { goneVolumes, readGoneVolumes } from "./volumes.ts";

interface FollowContext {
  cluster: Cluster;
  gate: StartGate;
  departing: ReadonlySet<string>;
  custodian: Custodian;
  log: WarnLog;
  signal: AbortSignal;
  /** The machine is this host's, and nothing of it is here. */
  takeIn: TakeIn | undefined;
  untilReleased(id: string): void;
}

/** Follows the owners until the signal is aborted: each change, and all of them at the beginning of each lease. */
export function follow(context: FollowContext): void {
  const { cluster, gate, custodian, log, signal } = context;
  const { view, lease } = cluster;
  const takeAway = (record: MachineRecord, owner: OwnerRecord | undefined, volumes: readonly string[]) => {
    const { id } = record;
    if (context.departing.has(id)) return;
    gate.remove(id);
    const reason = owner === undefined ? "it was destroyed in the cluster" : `host ${owner.host} owns it now`;
    const taken = { id, host: owner?.host, epoch: owner?.epoch ?? 0, volumes, reason, keep: true };
    custodian.takeAway(taken).catch((error: unknown) => {
      log.warn({ machine: id, reason: messageOf(error) }, "a machine of another host could not be given up");
    });
  };
  const takeIn = async (id: string): Promise<boolean> => {
    try {
      return (await context.takeIn?.(id)) ?? false;
    } catch (error) {
      log.warn({ machine: id, reason: messageOf(error) }, "a machine could not be taken in");
      return true;
    }
  };
  const changed = (changes: readonly Changed[]) => {
    const here = new Map(custodian.records().map((record) => [record.id, record]));
    for (const { key, value } of changes) {
      const id = nameOf(key);
      const record = here.get(id);
      const owner = value === null ? undefined : (JSON.parse(value) as OwnerRecord);
      // A machine without an epoch is being claimed at this moment. One that is destroyed gave its claim back itself.
      const goes = record?.epoch !== undefined && record.state !== "destroying";
      if (owner?.host === cluster.host) {
        gate.add(id, owner.epoch);
        if (!custodian.stores(id)) void takeIn(id);
      } else if (goes && (owner === undefined || owner.epoch >= (record.epoch ?? 0)))
        // They changed hands in the same transaction, which the view has adopted.
        takeAway(
          record,
          owner,
          goneVolumes(record, cluster.host, (each) => view.value(each)),
        );
    }
  };
  const compare = async () => {
    const before = custodian.records().filter(({ epoch }) => epoch !== undefined);
    const owners: Owners = await gate.read();
    for (const record of before) {
      const owner = owners.get(record.id);
      if (owner?.host !== cluster.host)
        takeAway(record, owner, await readGoneVolumes(record, cluster.host, cluster.directory));
    }
    for (const [id, owner] of owners) {
      if (owner.host !== cluster.host || custodian.stores(id) || (await takeIn(id))) continue;
      // Destroyed here, or never stored, before the platform ended: the claim was not given back.
      if (!custodian.stores(id)) context.untilReleased(id);
    }
  };
  const compareAll = () => void untilDone(compare, { what: "comparing machines with the cluster", log, signal });
  const unsubscribe = view.subscribe(KEYS.machines, changed);
  let { term } = lease;
  const unsubscribeLease = lease.subscribe(() => {
    if (lease.state !== "live" || lease.term === term) return;
    term = lease.term;
    compareAll();
  });
  signal.addEventListener("abort", () => {
    unsubscribe();
    unsubscribeLease();
  });
  compareAll();
}
