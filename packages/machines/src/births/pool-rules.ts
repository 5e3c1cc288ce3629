/** Which pool a template may have, and what it needs next. Pure. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { MachineDependencies } from "../dependencies.ts";

/** A machine that waits in a pool. */
interface Member {
  record: Pick<MachineRecord, "id" | "state" | "snapshot">;
  /** It was let sleep by this platform. */
  settled: boolean;
}

type PoolStep =
  | { do: "nothing" }
  | { do: "destroy"; id: string }
  /** It is woken and let sleep again: it was not finished, or is not in memory since the platform was restarted. */
  | { do: "settle"; id: string }
  | { do: "bear" };

/** Machines without a memory go first, whatever has ended it, then those that are too many. */
export function chooseNext(members: readonly Member[], size: number): PoolStep {
  const ended = members.find(({ record }) => record.state !== "suspended" || record.snapshot === null) ?? members[size];
  if (ended !== undefined) return { do: "destroy", id: ended.record.id };
  if (members.length < size) return { do: "bear" };
  const restless = members.find(({ settled }) => !settled);
  return restless === undefined ? { do: "nothing" } : { do: "settle", id: restless.record.id };
}

/** The machines in the pool of a template, oldest first. */
export function membersOf<T extends { record: MachineRecord }>(machines: readonly T[], template: string): T[] {
  return machines.filter(
    ({ record }) => record.pooled === true && record.origin?.template === template && record.state !== "destroyed",
  );
}

/** Throws `failed_precondition` when a template cannot have a pool of this size. */
export function requirePool(size: number, { ownership }: Pick<MachineDependencies, "ownership">): void {
  if (size === 0 || ownership === undefined) return;
  const message =
    "In a cluster, templates have no pools. Make the machines when they are needed, or leave `warm_pool` out.";
  throw new HibernautError("failed_precondition", message, { field: "warm_pool" });
}
