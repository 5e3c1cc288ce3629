/** The creation of a machine: everything that is checked, held and stored, up to its first start. */
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type MachineConfig, machineEgress } from "@hibernaut/domain/config";
import { requireSupported } from "@hibernaut/domain/config-rules";
import { HibernautError } from "@hibernaut/domain/errors";
import { leaseFrom } from "@hibernaut/domain/lease";
import type { CreateMachine, MachineEvent, MachineRecord, Origin } from "@hibernaut/domain/machine";
import { isValidName, NAME_RULE } from "@hibernaut/domain/naming";
import { never } from "@hibernaut/lib/async";
import { copySparseUntilAborted } from "@hibernaut/lib/disk-files";
import { flush } from "@hibernaut/lib/durable";
import { given } from "@hibernaut/lib/given";
import { messageOf } from "@hibernaut/lib/text";
import type { Store } from "@hibernaut/store";
import type { HeldMounts } from "@hibernaut/volumes";
import { freeAddress } from "./address.ts";
import type { MachineController } from "./controller.ts";
import type { ControllerSet } from "./controller-set.ts";
import type { MachineDependencies } from "./dependencies.ts";
import { newMachineId, newMachineName } from "./identity.ts";
import { newRecord } from "./new-record.ts";
import { requireApp, sameApp } from "./require-app.ts";
import { requireFreePorts } from "./tcp-ports.ts";

/** Where a machine is created. */
interface CreateContext {
  deps: MachineDependencies;
  controllers: ControllerSet;
  /** Throws `draining` while no machine may be created. */
  refuseWork(): void;
  /** Ends the import of the image, if nobody else waits for it. */
  signal?: AbortSignal | undefined;
  /** What it has from the beginning. */
  restored?: {
    origin: Origin;
    /** Its volumes, which are held. */
    held: HeldMounts;
    /** The path of its writable layer, which is copied. Undefined: an empty one. */
    layer: string | undefined;
    coldReason: string;
  };
}

/**
 * Creates a machine and starts it, unless `skipLaunch` is set. Imports its image and creates its volumes if necessary.
 * Rejects with `not_found`, `invalid_argument` or `already_exists`, and with what the image store and the volumes refuse.
 */
export async function createMachine(
  { deps, controllers, refuseWork, signal, restored }: CreateContext,
  app: string,
  {
    name = newMachineName(),
    region,
    config,
    skipLaunch = false,
    releaseCommand,
    temporary,
    cordoned,
    lease,
  }: CreateMachine,
): Promise<MachineController> {
  const { images, volumes, store, settings, bundles } = deps;
  requireApp(store.apps, app, `Create it with \`hibernaut apps create ${app}\`.`);
  const stillThere = sameApp(store.apps, app);
  const requireSameApp = () => {
    stillThere();
    controllers.deletions.requireLasting(app);
  };
  requireSameApp();
  if (!isValidName(name))
    throw new HibernautError("invalid_argument", `A machine's name ${NAME_RULE}.`, { field: "name", value: name });
  requireRegion(region, settings.region);
  requireFreeName(store, app, name);
  requireSupported(config);
  await deps.network.requireRules(machineEgress(config));
  requireFreePorts(deps, app, config);
  // Before anything is downloaded or made, and once more below: other machines may have been created meanwhile.
  deps.quotas?.requireMachine(app, config, { starts: !skipLaunch });
  const requireRoom = () => {
    if (skipLaunch) return deps.diskQuota?.require(app, 0);
    controllers.admission.require({ id: "", config }, `a machine of app ${app}`);
    deps.diskQuota?.requireForStart(app, config, "");
  };
  requireRoom();
  // Held until the machine is stored, so that a cleanup in the meantime does not delete the image.
  using image = await images.hold(config.image, { ...(signal && { signal }) });
  // Likewise, so that no other machine gets the volumes.
  using held = restored?.held ?? (await volumes.hold(app, config.mounts));
  const id = newMachineId();
  await using layer = await layerFor(id, restored?.layer, deps, signal);
  requireSameApp();
  // The import may have taken minutes, in which a drain may have begun.
  refuseWork();
  requireRoom();
  requireFreePorts(deps, app, config);
  deps.quotas?.requireMachine(app, config, { starts: !skipLaunch });
  const createdAt = deps.clock?.() ?? new Date();
  const made = newRecord({
    id,
    app,
    name,
    config: withMounts(config, held),
    imageDigest: image.digest,
    region: settings.region,
    bundleVersion: bundles.current.version,
    address: freeAddress(deps),
    createdAt,
    ...given({ releaseCommand, temporary, cordoned }),
    ...(lease !== undefined && { lease: leaseFrom(lease, createdAt) }),
  });
  const record = { ...made, ...(restored && beginning(restored)) };
  const event = { at: record.createdAt, type: "create", from: null, to: "created", details: {} } as const;
  // Another one may have got the name while this one waited for its image.
  insertMachine(store, record, event);
  await layer?.deliver();
  const controller = controllers.add(deps.ownership === undefined ? record : await claim(deps, record));
  if (!skipLaunch) controller.command({ type: "start" });
  return controller;
}

function beginning({ origin, layer, coldReason }: NonNullable<CreateContext["restored"]>): Partial<MachineRecord> {
  return { origin, coldReason, resetLayer: layer === undefined };
}

/** Copies a writable layer to where it waits until its machine is stored. It is deleted unless it is delivered. */
async function layerFor(
  id: string,
  layer: string | undefined,
  { files: { seeds } }: Pick<MachineDependencies, "files">,
  signal: AbortSignal = never(),
): Promise<(AsyncDisposable & { deliver(): Promise<void> }) | undefined> {
  if (layer === undefined) return undefined;
  const copy = join(seeds.cradle(id), "layer.ext4");
  await mkdir(dirname(copy), { recursive: true, mode: 0o700 });
  await copySparseUntilAborted(layer, copy, signal);
  await flush(copy);
  await flush(dirname(copy));
  await seeds.flushCradles();
  return { deliver: () => seeds.deliver(id), [Symbol.asyncDispose]: () => seeds.abandon(id) };
}

/** Stores a new machine. Throws `already_exists` when another one has got its name meanwhile. */
export function insertMachine(store: Pick<Store, "machines">, record: MachineRecord, event: MachineEvent): void {
  if (store.machines.insert(record, event)) return;
  requireFreeName(store, record.app, record.name);
  throw new Error(`the id of machine ${record.id} is taken`);
}

/** Returns the configuration with the volumes that were found for its mounts. */
export function withMounts({ mounts: _asked, ...config }: MachineConfig, { mounts }: HeldMounts): MachineConfig {
  return mounts === undefined ? config : { ...config, mounts };
}

/** Makes the machine this host's in the cluster. Undoes the intent, which is stored already, when that is refused. */
export async function claim(deps: MachineDependencies, record: MachineRecord): Promise<MachineRecord> {
  const { store, ownership } = deps;
  if (ownership === undefined) return record;
  try {
    const claimed = await ownership.claim(record, (taken) => freeAddress(deps, taken));
    store.machines.update(claimed);
    return claimed;
  } catch (error) {
    const at = (deps.clock?.() ?? new Date()).toISOString();
    const details = { reason: messageOf(error) };
    store.machines.remove(record, { at, type: "destroy", from: record.state, to: "destroyed", details });
    ownership.release(record);
    throw error;
  }
}

function requireRegion(wanted: string | undefined, region: string): void {
  if (wanted === undefined || wanted === region) return;
  const message = `There is no region ${wanted} here; the only one is ${region}.`;
  throw new HibernautError("invalid_argument", message, { field: "region" });
}

/** Throws `already_exists` when a machine of the app has the name. */
export function requireFreeName({ machines }: Pick<Store, "machines">, app: string, name: string): void {
  const holder = machines.list(app).find((machine) => machine.name === name);
  if (holder === undefined) return;
  const message = `App ${app} already has a machine named ${name} (${holder.id}). Choose another name.`;
  throw new HibernautError("already_exists", message, { machine_id: holder.id });
}
