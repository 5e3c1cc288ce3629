/** The birth of machines from a seed: each with a memory and a disk of its own, asleep until it is started. */
import { servicePorts, withEgress } from "@hibernaut/domain/config";
import { requireSupported } from "@hibernaut/domain/config-rules";
import type { EgressConfig } from "@hibernaut/domain/egress";
import { HibernautError } from "@hibernaut/domain/errors";
import { type LeaseTerms, leaseFrom } from "@hibernaut/domain/lease";
import { FORKS_AT_ONCE } from "@hibernaut/domain/limits";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { isValidName, NAME_RULE } from "@hibernaut/domain/naming";
import type { Sandbox } from "@hibernaut/domain/sandbox";
import type { Mount } from "@hibernaut/domain/volume";
import { adviceFor } from "@hibernaut/lib/absence";
import { failureReason } from "@hibernaut/lib/exec";
import type { Semaphore } from "@hibernaut/lib/semaphore";
import { messageOf, withoutPeriod } from "@hibernaut/lib/text";
import { networkMachine } from "@hibernaut/network";
import { freeAddress } from "../address.ts";
import type { MachineController } from "../controller.ts";
import type { ControllerSet } from "../controller-set.ts";
import { claim, insertMachine, requireFreeName, withMounts } from "../create-machine.ts";
import type { MachineDependencies } from "../dependencies.ts";
import { newMachineName } from "../identity.ts";
import { newRecord } from "../new-record.ts";
import { requireFreePorts } from "../tcp-ports.ts";
import type { BirthCounts } from "./birth-counts.ts";
import { fillCradle } from "./cradle.ts";
import { bytesOf, type Seed } from "./seed.ts";

/** What is chosen for the machines. */
export interface Births {
  count: number;
  /** The name of the only one; of several, each gets it with a number. By default, a random one. */
  name?: string;
  /** In addition to what the seed's machine had. Programs that are running already do not see it. */
  env?: Record<string, string>;
  cordoned?: boolean;
  /** Where it may connect to, in place of what the seed's machine had; null: wherever the network lets machines. */
  egress?: EgressConfig | null;
  /** It is a sandbox. Of several, each is one. */
  sandbox?: Sandbox;
  /** A client has this lease on it from the beginning. */
  lease?: LeaseTerms;
  /** Volumes of a single machine, which then begins with the disk of its seed, and without the memory. */
  mounts?: Mount[];
  /** It waits in the pool of its template. */
  pooled?: true;
  /** It is needed for the making of a template, or for the files of a volume, and never taken from a pool. */
  temporary?: true;
}

export interface BirthContext {
  deps: MachineDependencies;
  controllers: ControllerSet;
  /** How many copies are made at once, of all apps: each takes the disk from every machine. */
  copying: Semaphore;
  counts: BirthCounts;
  /** Throws when no machine may be made any more: a drain has begun, or the app has been deleted. */
  requireStill(): void;
}

/** Rejects with what these machines would be refused for, before anything is copied. `folder` has the state. */
export async function requireBirths(
  context: BirthContext,
  { folder, record }: Pick<Seed, "folder" | "record">,
  births: Births,
  { starts, drafts }: { starts: boolean; drafts: number },
): Promise<void> {
  const bytes = await bytesOf(folder, record);
  requireAllowed(context, record, births, { starts, bytes });
  await context.deps.files.seeds.requireRoom((births.count + drafts) * bytes);
}

/** Synchronous, so that nothing comes between the check and what follows. `bytes` is what each takes of the disk. */
function requireAllowed(
  { deps, controllers, requireStill }: BirthContext,
  { app, config }: Pick<MachineRecord, "app" | "config">,
  births: Births,
  { starts, bytes }: { starts: boolean; bytes: number },
): void {
  const { minimum, maximum } = FORKS_AT_ONCE;
  requireStill();
  if (births.count < minimum || births.count > maximum)
    throw new HibernautError("invalid_argument", `From ${minimum} to ${maximum} machines are made at once.`, {
      field: "count",
    });
  for (const name of namesOf(births)) if (name !== undefined) requireName(deps, app, name);
  if (births.mounts !== undefined) requireSupported({ ...config, mounts: births.mounts });
  requireFreePorts(deps, app, config);
  if (starts) controllers.admission.require({ id: "", config }, `a machine of app ${app}`);
  deps.quotas?.requireMachine(app, config, { starts, count: births.count });
  deps.diskQuota?.require(app, births.count * bytes);
}

/** Throws when no machine of the app can have this name. */
export function requireName({ store }: MachineDependencies, app: string, name: string): void {
  if (!isValidName(name))
    throw new HibernautError("invalid_argument", `A machine's name ${NAME_RULE}.`, { field: "name", value: name });
  requireFreeName(store, app, name);
}

/**
 * Makes machines from a seed, all of them or none. They sleep with the seed's memory, and become themselves when they are
 * started; one with volumes has never run. Rejects with `unavailable` when the host cannot copy the files, and with what the
 * volumes refuse.
 */
export async function bear(
  context: BirthContext,
  seed: Seed,
  births: Births,
  signal: AbortSignal,
): Promise<MachineController[]> {
  const { deps } = context;
  const made: MachineRecord[] = [];
  // Until the machine is stored, so that no other one gets the volumes.
  using held = await deps.volumes.hold(seed.record.app, births.mounts);
  try {
    const bytes = await bytesOf(seed.folder, seed.record);
    for (const name of namesOf(births)) {
      const drafted = recordOf(seed, { ...births, name: name ?? newMachineName() }, deps);
      const record = held.mounts === undefined ? drafted : { ...drafted, config: withMounts(drafted.config, held) };
      made.push(record);
      const heir = { ...record, generation: record.snapshot?.generation };
      await context.copying.run(() => fillCradle(context, seed, heir, signal), signal);
    }
    // Others may have been made meanwhile.
    requireAllowed(context, seed.record, births, { starts: false, bytes });
    // All at once: no other machine gets an address or a name in between.
    const settled = await Promise.allSettled(made.map((record) => settleIn(context, record, births)));
    const failed = settled.find((one) => one.status === "rejected");
    const born = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    if (failed === undefined) return born;
    for (const one of born) one.command({ type: "destroy", force: true });
    throw failed.reason;
  } catch (error) {
    for (const { id } of made) await deps.files.seeds.abandon(id);
    signal.throwIfAborted();
    if (error instanceof HibernautError) throw error;
    const why = adviceFor(error) ?? "Free some space on the disk of the data directory, and try again.";
    const message = `The files of the new machines could not be made: ${withoutPeriod(failureReason(error))}. ${why}`;
    throw new HibernautError("unavailable", message, {}, { cause: error });
  }
}

function namesOf({ count, name }: Births): (string | undefined)[] {
  if (name === undefined || count === 1) return Array.from({ length: count }, () => name);
  return Array.from({ length: count }, (_, index) => `${name}-${index + 1}`);
}

/** The machine as it is stored: asleep, with the memory of another one, or about to start with its disk alone. */
function recordOf(
  { record: parent, origin }: Seed,
  { name, env, cordoned, egress, pooled, temporary, sandbox, mounts }: Omit<Births, "name"> & { name: string },
  { clock, settings }: Pick<MachineDependencies, "clock" | "settings">,
): MachineRecord {
  const { snapshot, programs } = parent;
  const config = egress === undefined ? parent.config : withEgress(parent.config, egress);
  const born = newRecord({
    ...{ app: parent.app, name, imageDigest: parent.imageDigest, bundleVersion: parent.bundleVersion },
    config: env === undefined ? config : { ...config, env: { ...config.env, ...env } },
    region: settings.region,
    address: "", // it gets one when it is stored
    createdAt: clock?.() ?? new Date(),
    ...(cordoned !== undefined && { cordoned }),
    ...(temporary !== undefined && { temporary }),
  });
  const asleep = { state: "suspended", snapshot, coldReason: "", newborn: true } as const;
  return {
    ...{ ...born, origin, resetLayer: false },
    // In the memory of the seed, volumes are not mounted.
    ...(mounts === undefined ? asleep : { coldReason: "volumes_mounted" }),
    ...(pooled !== undefined && { pooled }),
    ...(sandbox !== undefined && { sandbox }),
    ...(programs !== undefined && { programs }),
  };
}

/** Stores the machine, which makes it exist, and puts its files in their place. What fails leaves nothing of it. */
async function settleIn(
  { deps, controllers }: BirthContext,
  draft: MachineRecord,
  { lease }: Pick<Births, "lease">,
): Promise<MachineController> {
  const { store, files, log, network, clock } = deps;
  const leased = lease && { lease: leaseFrom(lease, clock?.() ?? new Date()) };
  const record = { ...draft, ...leased, address: freeAddress(deps) };
  const { kind, machine, template } = draft.origin ?? {};
  const details = { origin: kind, machine_id: machine, ...(template !== undefined && { template }) };
  const event = { at: record.createdAt, type: "create", from: null, to: record.state, details } as const;
  insertMachine(store, record, event);
  const own = await files.seeds
    .deliver(record.id)
    .then(() => claim(deps, record))
    .catch(async (error: unknown) => {
      const end = {
        ...event,
        type: "destroy",
        from: record.state,
        to: "destroyed",
        details: { reason: messageOf(error) },
      } as const;
      // A refused claim has removed it already.
      if (store.machines.get(record.id) !== undefined) store.machines.remove(record, end);
      await files.remove(record.id);
      throw error;
    });
  const controller = controllers.add(own);
  const { generation } = record.snapshot ?? {};
  // One that inherited a seal need not be read again.
  if (generation !== undefined && (await deps.snapshots.verifiedAt(record.id, generation)) === undefined)
    deps.snapshots.arrived(record.id, generation);
  // The first wake would do it, while a request waits; it says what is wrong, too.
  await network.attach(networkMachine(own), servicePorts(own.config)).catch((error: unknown) => {
    log.warn({ machine: own.id, reason: messageOf(error) }, "a new machine has no network yet");
  });
  return controller;
}

/** One that the host has no room for sleeps on: a request, or a start, wakes it later. */
export function launch(controller: MachineController, { log }: Pick<MachineDependencies, "log">): void {
  try {
    controller.command({ type: "start" });
  } catch (error) {
    if (!(error instanceof HibernautError)) throw error;
    log.info({ machine: controller.record.id, reason: error.message }, "a fork sleeps on");
  }
}
