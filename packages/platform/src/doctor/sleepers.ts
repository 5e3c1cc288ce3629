/** Finds out, for `hibernaut doctor`, which sleeping machines the next start of the platform would cost their memory. */
import { join } from "node:path";
import type { GuestBundle } from "@hibernaut/domain/guest-bundle";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { readBundle } from "@hibernaut/guest/bundles";
import type { AcceleratorChoice } from "@hibernaut/hypervisor/qemu/accelerator";
import { guestsIn } from "@hibernaut/hypervisor/qemu/find-processes";
import { openQemu } from "@hibernaut/hypervisor/qemu/open";
import { MachineFiles } from "@hibernaut/machines/files";
import { type Unfit, unfitSnapshots } from "@hibernaut/machines/unfit-snapshots";
import type { NetworkMode } from "@hibernaut/network";
import { boundMode } from "@hibernaut/network/bound";
import { plannedNetwork } from "@hibernaut/network/planned";
import { knownMachine } from "@hibernaut/network/start";
import type { Settings } from "@hibernaut/settings";
import { SnapshotStore } from "@hibernaut/snapshots";
import { readMachines } from "@hibernaut/store/read";

/** The machines of the data directory, those whose guests are running, and the mode that `auto` is bound to by them. */
export interface Sleepers {
  machines: MachineRecord[];
  alive: ReadonlySet<string>;
  /** Undefined without machines. */
  bound: NetworkMode | undefined;
}

/** Looks for them. Rejects when the database cannot be read. */
export async function findSleepers(dataDir: string): Promise<Sleepers> {
  const machines = readMachines(join(dataDir, "hibernaut.db"));
  const guests = machines.length === 0 ? [] : await guestsIn(dataDir);
  const alive = new Set(guests.map(({ machineId }) => machineId));
  return { machines, alive, bound: boundMode(machines.map((record) => knownMachine(record, alive))) };
}

/** Returns the machines that would lose their memory with these settings. */
export async function unfitSleepers(
  { machines, alive }: Sleepers,
  settings: Settings,
  { bundle, accelerator, cpu }: { bundle: GuestBundle } & Pick<AcceleratorChoice, "accelerator" | "cpu">,
): Promise<Unfit[]> {
  const files = new MachineFiles(settings.dataDir, settings.layerSizeMb);
  const { machineRoot, runRoot } = files;
  const { hypervisor, refusedHypervisor } = await openQemu(settings, { accelerator, cpu, runRoot, machineRoot });
  const known = machines.map((record) => knownMachine(record, alive));
  return unfitSnapshots(machines, {
    hypervisor,
    network: await plannedNetwork(settings, known),
    // Nothing is resumed or sealed here.
    snapshots: new SnapshotStore({
      machineFolder: (id) => files.paths(id).folder,
      refusedHypervisor,
      bootId: "",
      hotPages: async () => [],
      onTrouble() {},
    }),
    bundles: await bundlesOf(settings.dataDir, bundle, machines),
    // A change of secrets discards snapshots at once: no start does.
    secrets: { version: (app) => secretsOf(machines, app) },
  });
}

/** The bundles that the next start would find: the one that the setup built, and those that machines keep. */
async function bundlesOf(dataDir: string, current: GuestBundle, machines: readonly MachineRecord[]) {
  const found = new Map([[current.version, current]]);
  for (const version of new Set(machines.map(({ bundleVersion }) => bundleVersion))) {
    const kept = found.has(version) ? undefined : await readBundle(join(dataDir, "bundles", version)).catch(() => {});
    // One that is missing is missing for the platform as well, which says so when the machine starts.
    if (kept !== undefined) found.set(version, kept);
  }
  return { current, get: (version: string) => found.get(version) };
}

function secretsOf(machines: readonly MachineRecord[], app: string): string {
  return machines.find((machine) => machine.app === app && machine.snapshot !== null)?.snapshot?.secrets ?? "";
}
