/** Compares what a host has stored with the cluster, before anything of it is touched. */
import { setTimeout as delay } from "node:timers/promises";
import type { MachineRecord } from "../../domain/machine.ts";
import { isHibernautError } from "../../domain/errors.ts";
import { messageOf } from "../../lib/text.ts";
import type { Settled } from "../../machines/ownership.ts";
import type { Cluster } from "../cluster.ts";
import type { OwnerRecord } from "../keys.ts";
import { claim } from "./claims.ts";
import type { Owners, StartGate } from "./gate.ts";
import { readGoneVolumes } from "./volumes.ts";
import type { WarnLog } from "./retry.ts";

/** How long the platform waits for the directory when it starts, in milliseconds. */
const ANSWER_MS = 5_000;

/** What one stored machine is, by its owner in the directory, not yet with its volumes. Pure. `claim`: the platform ended before it was claimed. */
export function settled(record: MachineRecord, owner: OwnerRecord | undefined, host: string): Settled | "claim" {
  const elsewhere = (at: { host: string | undefined; epoch: number }): Settled => ({
    ...{ kind: "elsewhere", record, volumes: [] },
    ...at,
  });
  if (owner === undefined) {
    if (record.epoch === undefined) return "claim";
    return elsewhere({ host: undefined, epoch: record.epoch });
  }
  const { epoch } = owner;
  if (owner.host !== host) return elsewhere({ host: owner.host, epoch });
  // It went away from this host and came back without its files.
  if (owner.evacuated !== undefined && record.epoch !== undefined && record.epoch < epoch)
    return elsewhere({ host, epoch });
  return { kind: "own", record: { ...record, epoch } };
}

interface SettleContext {
  cluster: Cluster;
  gate: StartGate;
  log: WarnLog;
}

/** Settles all records. Never rejects: without an answer, they are `unknown`. */
export async function settle(
  records: readonly MachineRecord[],
  { cluster, gate, log }: SettleContext,
): Promise<Settled[]> {
  const owners = await readOwners(gate, log);
  if (owners === undefined) return records.map((record) => ({ kind: "unknown", record }));
  const all: Settled[] = [];
  for (const record of records) {
    const one = settled(record, owners.get(record.id), cluster.host);
    const known = one === "claim" ? await completeClaim(record, { cluster, gate, log }) : one;
    all.push(known.kind === "elsewhere" ? await withVolumes(known, { cluster, log }) : known);
  }
  return all;
}

/** Adds which of its volumes went along. Without an answer, nothing of the machine is touched. */
async function withVolumes(
  one: Settled & { kind: "elsewhere" },
  { cluster, log }: Omit<SettleContext, "gate">,
): Promise<Settled> {
  const { record } = one;
  try {
    return { ...one, volumes: await readGoneVolumes(record, cluster.host, cluster.directory) };
  } catch (error) {
    log.warn({ machine: record.id, reason: messageOf(error) }, "where the volumes of a machine are is not known");
    return { kind: "unknown", record };
  }
}

/** The platform ended between storing the machine and claiming it. One that another took the name of was never anyone's. */
async function completeClaim(record: MachineRecord, { cluster, gate, log }: SettleContext): Promise<Settled> {
  try {
    const claimed = await claim(record, () => record.address, cluster);
    gate.add(claimed.id, claimed.epoch ?? 0);
    return { kind: "own", record: claimed };
  } catch (error) {
    const reason = messageOf(error);
    // One that was only being created is nobody's loss. Any other is kept, and does not start.
    if (record.state !== "created" || !isHibernautError(error, "already_exists", "not_found")) {
      log.warn({ machine: record.id, reason }, "a machine could not be claimed, and does not start until it is");
      return { kind: "unknown", record };
    }
    log.warn({ machine: record.id, reason }, "a machine that was being created is given up");
    return { kind: "elsewhere", record, host: undefined, epoch: 0, volumes: [] };
  }
}

async function readOwners(gate: StartGate, log: WarnLog): Promise<Owners | undefined> {
  const late = delay(ANSWER_MS, undefined, { ref: false }).then(() => {
    throw new Error(`the cluster directory did not answer within ${ANSWER_MS} ms`);
  });
  try {
    return await Promise.race([gate.read(), late]);
  } catch (error) {
    log.warn({ reason: messageOf(error) }, "which machines are this host's is not known; none starts until it is");
    return undefined;
  }
}
