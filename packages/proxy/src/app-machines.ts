/** The machines of one app, prepared for what every request asks. */
import type { RoutedMachine } from "./routed-machine.ts";
import { isOwnPort } from "./tcp/ports.ts";

/** What follows from the machines' configurations and names. */
interface Prepared {
  /** Those that HTTP requests go to which name no machine: pinned ones only if there are no others. */
  sharing: readonly RoutedMachine[];
  /** Whether there is a machine for HTTP at all. */
  takesHttp: boolean;
  byName: ReadonlyMap<string, RoutedMachine>;
  /** Whether requests may choose one of the machines. */
  addressable: boolean;
  /** Whether requests over plain HTTP are redirected. */
  forcesHttps: boolean;
  /** Whether browsers are shown a page while one of the machines cold starts. */
  hasWakePage: boolean;
  /** How long a request may wait for any of the machines. */
  holdTimeoutMs: number;
}

/** Prepared when a request asks first: a table of thousands of machines arrives machine by machine. */
export class AppMachines {
  readonly all: readonly RoutedMachine[];
  #prepared: Prepared | undefined;

  constructor(all: readonly RoutedMachine[]) {
    this.all = all;
  }

  get prepared(): Prepared {
    this.#prepared ??= prepare(this.all);
    return this.#prepared;
  }

  /** The configuration or the name of one of the machines changed. */
  changed(): void {
    this.#prepared = undefined;
  }
}

/**
 * Returns those of the machines that HTTP is for: those with an HTTP service. If none has one, all: many apps that speak HTTP do
 * not say so. In a network they have to, because their other services are for their neighbours alone.
 */
function webOf(all: readonly RoutedMachine[]): readonly RoutedMachine[] {
  const web = all.filter(({ policy }) => policy.web);
  return web.length > 0 ? web : all.filter((machine) => !isForNeighbours(machine));
}

/** Whether the services of a machine are for the network of its app alone, or it has none. */
export function isForNeighbours({ row, policy }: Pick<RoutedMachine, "row" | "policy">): boolean {
  if (policy.worker) return true;
  return !policy.web && row.tcp?.some(({ port }) => isOwnPort(port)) === true;
}

/** Returns those of the machines that requests go to which name none: pinned ones only if there are no others. */
export function sharingOf(all: readonly RoutedMachine[]): readonly RoutedMachine[] {
  const unpinned = all.filter(({ policy }) => !policy.pinned);
  return unpinned.length > 0 ? unpinned : all;
}

function prepare(all: readonly RoutedMachine[]): Prepared {
  const web = webOf(all);
  return {
    sharing: sharingOf(web),
    takesHttp: web.length > 0,
    byName: new Map(all.map((machine) => [machine.row.name, machine])),
    addressable: all.some(({ policy }) => policy.ownPorts.length > 0),
    forcesHttps: all.some(({ policy }) => policy.forceHttps),
    hasWakePage: all.some(({ policy }) => policy.wakePage),
    holdTimeoutMs: longest(
      all.flatMap(({ policy }) => (policy.worker ? [] : (policy.holdTimeoutMs ?? Number.POSITIVE_INFINITY))),
    ),
  };
}

function longest(times: readonly number[]): number {
  return times.length === 0 ? Number.POSITIVE_INFINITY : Math.max(...times);
}
