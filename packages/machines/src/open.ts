/** Puts the resources of the platform together: one object, from which each part takes only what it needs. */
import { Semaphore } from "@hibernaut/lib/semaphore";
import { BirthCounts } from "./births/birth-counts.ts";
import { Pools } from "./births/pools.ts";
import { Consoles } from "./console-log.ts";
import { ControllerSet } from "./controller-set.ts";
import type { MachineDependencies } from "./dependencies.ts";
import { Prewarmer } from "./prewarm/prewarmer.ts";
import { ReservedNames, reservedBySettings } from "./reserved-names.ts";
import { AppSecrets } from "./resources/app-secrets.ts";
import { Apps } from "./resources/apps.ts";
import { Arrivals } from "./resources/arrivals.ts";
import { BackupRestores } from "./resources/backup-restores.ts";
import { Commands } from "./resources/commands.ts";
import { Custody } from "./resources/custody.ts";
import { Departures } from "./resources/departures.ts";
import { Drain } from "./resources/drain.ts";
import { FileCopies } from "./resources/file-copies.ts";
import { FileTree } from "./resources/file-tree.ts";
import { Forks } from "./resources/forks.ts";
import { Forwards } from "./resources/forwards.ts";
import { GuestApi } from "./resources/guest-api.ts";
import { Host } from "./resources/host.ts";
import { Hostnames } from "./resources/hostnames.ts";
import { Leases } from "./resources/leases.ts";
import { Logs } from "./resources/logs.ts";
import { MachineCopies } from "./resources/machine-copies.ts";
import { Machines } from "./resources/machines.ts";
import { MachineMetadata } from "./resources/metadata.ts";
import { Previews } from "./resources/previews.ts";
import { Processes } from "./resources/processes.ts";
import { ReleaseCommands } from "./resources/release-commands.ts";
import { Releases } from "./resources/releases.ts";
import { Restores } from "./resources/restores.ts";
import { TemplateTravel } from "./resources/template-travel.ts";
import { Templates } from "./resources/templates.ts";
import { Timelines } from "./resources/timelines.ts";
import { DueTimer } from "./schedule/timer.ts";
import { Scrubber } from "./scrubber.ts";
import { type Unfit, unfitSnapshots } from "./unfit-snapshots.ts";
import { workloadOf } from "./workload.ts";

/** Of memories and disks, for forks and templates of all apps. One waits for the disk while the other has it. */
const COPIES_AT_ONCE = 2;

/** Everything the platform does with apps and machines, by resource. */
export type Resources = ReturnType<typeof openMachines>;

/**
 * @example
 * const resources = openMachines(deps);
 * await resources.recover();
 * resources.apps.create("shop");
 */
export function openMachines(deps: MachineDependencies) {
  const controllers = new ControllerSet(deps);
  const drain = new Drain(deps, controllers);
  const keepOrNot = (draining: boolean) => (draining ? controllers.warm.shut("drain") : controllers.warm.reopen());
  keepOrNot(drain.active);
  drain.subscribe(keepOrNot);
  const machines = new Machines(deps, controllers, drain);
  const prewarmer = new Prewarmer({ machines, deps });
  const copies = new MachineCopies(deps, controllers);
  const births = {
    deps,
    controllers,
    copies,
    copying: new Semaphore(COPIES_AT_ONCE),
    counts: new BirthCounts(),
    drain,
  };
  const pools = new Pools(births);
  const templates = new Templates(births, pools);
  const arrivals = new Arrivals(deps);
  const apps = new Apps({ ...deps, templates, deletions: controllers.deletions }, machines);
  const logs = new Logs(deps, controllers, apps);
  const releases = new Releases(deps);
  const releaseCommands = new ReleaseCommands({ releases, machines, logs, controllers, log: deps.log });
  const commands = new Commands(controllers);
  const timer = new DueTimer({ controllers, drain, clock: () => deps.clock?.() ?? new Date(), log: deps.log });
  return {
    apps,
    previews: new Previews({ apps: deps.store.apps, quotas: deps.quotas, deletions: controllers.deletions }),
    machines,
    releases,
    releaseCommands,
    hostnames: new Hostnames(
      deps,
      apps,
      new ReservedNames(deps.store.reservedNames, reservedBySettings(deps.settings)),
    ),
    secrets: new AppSecrets(deps, controllers),
    logs,
    leases: new Leases(deps, controllers),
    metadata: new MachineMetadata(controllers),
    commands,
    fileCopies: new FileCopies(commands),
    fileTree: new FileTree(commands),
    processes: new Processes(commands, controllers),
    forwards: new Forwards(machines, commands),
    machineCopies: copies,
    forks: new Forks(births),
    templates,
    restores: new Restores(births),
    backupRestores: new BackupRestores(births),
    births: { counts: births.counts, pools },
    guestApi: new GuestApi(deps, controllers),
    drain,
    host: new Host(deps, controllers.warm),
    timelines: new Timelines(deps.store.timeline, controllers, () => (deps.clock?.() ?? new Date()).getTime()),
    scrubber: new Scrubber(deps, controllers),
    /** Machines that come to this host, or leave it, in a cluster. */
    custody: new Custody(deps, controllers),
    departures: new Departures(deps, controllers),
    arrivals,
    templateTravel: new TemplateTravel({ deps, arrivals, templates }),
    /** Bounds what guests print to their consoles. */
    consoles: new Consoles(deps, controllers),
    /** The paused VMMs that are kept of suspended machines. */
    warm: controllers.warm,
    /** What machines are waiting for at the moment. */
    workload: workloadOf(controllers, deps.bootSlots),
    /** The sleeping machines whose snapshots do not fit this platform. Changes nothing. */
    unfitSnapshots: () =>
      // Those in pools are made again.
      unfitSnapshots(
        deps.store.machines.list().filter(({ pooled }) => pooled !== true),
        deps,
      ),
    /** Drops the snapshots of these machines. Call it after `recover`. */
    dropSnapshots(unfit: readonly Unfit[]): void {
      for (const { machine, reason } of unfit) controllers.require(machine.id).dropSnapshot(reason);
    },
    /** Reconciles every stored machine with what is found on the host. Call it once, before anything else. */
    async recover(): Promise<void> {
      const { machines: stored } = deps.store;
      await deps.files.seeds.tidy({
        machine(id) {
          const { state = "destroyed", snapshot } = stored.get(id) ?? {};
          return state === "destroyed" ? undefined : (snapshot?.generation ?? "");
        },
        template: (id) => deps.store.templates.get(id) !== undefined,
        arriving: deps.templateClaims !== undefined,
      });
      await controllers.recover();
      releaseCommands.recover();
      templates.recover();
      drain.recover();
      prewarmer.start();
      pools.start();
    },
    /**
     * Starts machines when their schedules and planned wakes are due, beginning with what is due already. Returns a
     * function that ends that.
     */
    startTimer: () => timer.start(),
    /** Finishes the work in progress and disconnects from the guests, which keep running. */
    async close(): Promise<void> {
      prewarmer.close();
      await pools.close();
      await drain.close();
      await controllers.close();
    },
  };
}
