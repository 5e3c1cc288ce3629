/** All that a host does with its machines because it is in a cluster, put together. */
import type { Resources } from "@hibernaut/machines";
import type { VolumeTravel } from "@hibernaut/volumes";
import type { Cluster } from "./cluster.ts";
import { type Evacuation, evacuate } from "./evacuation/evacuate.ts";
import { LostHosts } from "./evacuation/lost-hosts.ts";
import { Recreation } from "./evacuation/recreate.ts";
import { choose } from "./moves/choose.ts";
import { HostDrain } from "./moves/drain.ts";
import { type Moves, openMoves } from "./moves/open.ts";
import { serveMoves } from "./moves/routes.ts";
import { dropCopy } from "./ownership/drop.ts";
import type { OpenOwnership } from "./ownership/open.ts";
import type { PeerCall } from "./peer-call.ts";
import type { PeerRoute } from "./peer-server.ts";

export interface ClusterMachinesOptions {
  cluster: Cluster;
  ownership: OpenOwnership;
  resources: Pick<Resources, "departures" | "arrivals" | "custody">;
  volumes: VolumeTravel;
  /** What this host says about itself has changed. */
  factsChanged?(): void;
  /** Calls other hosts. */
  call: PeerCall;
  dataDir: string;
  /** Returns the directory of a machine's files. */
  folderOf(id: string): string;
  settings: {
    /** How fast machines leave this host, in MB per second, all together. 0: as fast as possible. */
    moveRateMb: number;
    /** For how long a host may start machines after its lease has ended, in milliseconds. */
    clusterGraceMs: number;
  };
  log: {
    info(fields: Record<string, unknown>, message: string): void;
    warn(fields: Record<string, unknown>, message: string): void;
  };
}

/** What {@link openClusterMachines} makes. */
export interface ClusterMachines {
  readonly moves: Moves;
  /** Gives the machines of a lost host to others. Rejects as {@link evacuate} does. */
  evacuate(host: string): Promise<Evacuation[]>;
  /** Moves everything off this host. */
  readonly drain: HostDrain;
  /**
   * Resolves with the host with the most room of those that could resume a machine of this host; with `cold`, of all. Rejects
   * with `failed_precondition` when there is none.
   */
  anotherHost(id: string, options: { cold: boolean }): Promise<string>;
  /** Gives up the disputed copy of a machine that this host keeps. Rejects as {@link dropCopy} does. */
  drop(id: string, signal: AbortSignal): Promise<void>;
  /** Answers requests of other hosts about moves. */
  readonly route: PeerRoute;
  /** Begins to follow what other hosts do. Call it once machines are recovered. */
  start(): void;
  close(): void;
}

/** Opens what a host of a cluster does with machines. */
export function openClusterMachines(options: ClusterMachinesOptions): ClusterMachines {
  const { cluster, ownership, resources, settings, log } = options;
  const { custody, arrivals, departures } = resources;
  const closing = new AbortController();
  const takeIn = async (id: string) => (await moves.target.takeIn(id)) || recreation.takeIn(id);
  const moves: Moves = openMoves({ ...options, rateMb: settings.moveRateMb, takeIn });
  const recreation = new Recreation({
    cluster,
    custody,
    anew: ({ owner, ...origin }) => {
      const { app, name, address, epoch } = owner;
      return arrivals.anew({ ...origin, app, name, address, epoch });
    },
    log,
    closing: closing.signal,
  });
  const drain = new HostDrain({
    source: moves.source,
    choose: (id, promised) => choose(id, { cold: false, promised }, { cluster, departures }),
    records: () => custody.records(),
    changed: () => options.factsChanged?.(),
  });
  const anotherHost = async (id: string, { cold }: { cold: boolean }) => {
    const [best] = await choose(id, { cold }, { cluster, departures });
    return best as string;
  };
  const lost = new LostHosts({ cluster, custody, graceMs: settings.clusterGraceMs, log });
  return {
    moves,
    drain,
    anotherHost,
    route: (request, response) => serveMoves(moves.target, request, response),
    evacuate: (host) => evacuate(host, cluster),
    async drop(id, signal) {
      const { disputes } = ownership;
      await dropCopy(id, { cluster, custodian: custody, disputes, call: options.call }, signal);
      ownership.look(id);
    },
    start() {
      ownership.follow(custody, takeIn);
      moves.recover();
      lost.start();
    },
    close() {
      closing.abort(new Error("the platform is shutting down"));
      lost.close();
      moves.close();
      ownership.close();
    },
  };
}
