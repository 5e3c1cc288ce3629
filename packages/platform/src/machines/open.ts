/** Puts the resources of the platform together: one object, from which each part takes only what it needs. */
import { ControllerSet } from "./controller-set.ts";
import type { MachineDependencies } from "./dependencies.ts";
import { AppSecrets } from "./resources/app-secrets.ts";
import { Apps } from "./resources/apps.ts";
import { Commands } from "./resources/commands.ts";
import { GuestApi } from "./resources/guest-api.ts";
import { Hostnames } from "./resources/hostnames.ts";
import { Logs } from "./resources/logs.ts";
import { Machines } from "./resources/machines.ts";
import { Releases } from "./resources/releases.ts";
import { DueTimer } from "./schedule/timer.ts";

/** Everything the platform does with apps and machines, by resource. */
export interface Resources {
  readonly apps: Apps;
  readonly machines: Machines;
  readonly releases: Releases;
  readonly hostnames: Hostnames;
  readonly secrets: AppSecrets;
  readonly logs: Logs;
  readonly commands: Commands;
  readonly guestApi: GuestApi;
  /** Reconciles every stored machine with what is found on the host. Call it once, before anything else. */
  recover(): Promise<void>;
  /**
   * Starts machines when their schedules and planned wakes are due, beginning with what is due already. Returns a function
   * that ends that.
   */
  startTimer(): () => void;
  /** Finishes the work in progress and disconnects from the guests, which keep running. */
  close(): Promise<void>;
}

/**
 * @example
 * const resources = openMachines(deps);
 * await resources.recover();
 * resources.apps.create("shop");
 */
export function openMachines(deps: MachineDependencies): Resources {
  const controllers = new ControllerSet(deps);
  const machines = new Machines(deps, controllers);
  const apps = new Apps(deps, machines);
  const timer = new DueTimer({ controllers, clock: () => deps.clock?.() ?? new Date(), log: deps.log });
  return {
    apps,
    machines,
    releases: new Releases(deps),
    hostnames: new Hostnames(deps, apps),
    secrets: new AppSecrets(deps, controllers),
    logs: new Logs(deps, controllers, apps),
    commands: new Commands(controllers),
    guestApi: new GuestApi(deps, controllers),
    startTimer: () => timer.start(),
    recover: () => controllers.recover(),
    close: () => controllers.close(),
  };
}
