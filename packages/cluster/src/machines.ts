/** All that a host does with its machines because it is in a cluster, put together. */
import { HibernautError } from "@hibernaut/domain/errors";
import { background } from "@hibernaut/lib/background";
import type { Resources } from "@hibernaut/machines";
import type { VolumeTravel } from "@hibernaut/volumes";
import type { Cluster } from "./cluster.ts";
import { type Evacuation, evacuate } from "./evacuation/evacuate.ts";
import { LostHosts } from "./evacuation/lost-hosts.ts";
import { Recreation } from "./evacuation/recreate.ts";
import { choose } from "./moves/choose.ts";
import { HostDrain } from "./moves/drain.ts";
import { arrivalsFolder } from "./moves/papers.ts";
import { Rate } from "./moves/rate.ts";
import { serveMoves } from "./moves/routes.ts";
import { MoveSource } from "./moves/source.ts";
import { MoveTarget } from "./moves/target.ts";
import { dropCopy } from "./ownership/drop.ts";
import type { OpenOwnership } from "./ownership/open.ts";
import { type Log, untilDone } from "./ownership/retry.ts";
import type { PeerCall } from "./peer-call.ts";
import type { PeerClient } from "./peer-client.ts";
import type { PeerRoute } from "./peer-server.ts";
import type { OpenTemplateClaims } from "./templates/claims.ts";
import { type OpenedTemplates, openClusterTemplates } from "./templates/open.ts";

export interface ClusterMachinesOptions {
  cluster: Cluster;
  ownership: OpenOwnership;
  resources: Pick<Resources, "departures" | "arrivals" | "custody" | "templateTravel">;
  claims: OpenTemplateClaims;
  volumes: VolumeTravel;
  /** What this host says about itself has changed. */
  factsChanged?(): void;
  call: PeerCall;
  /** Asks another host for what is more than a few fields of JSON. */
  send: PeerClient["send"];
  dataDir: string;
  folderOf(id: string): string;
  settings: {
    /** How fast machines and templates leave this host, in MB per second, all together. 0: as fast as possible. */
    moveRateMb: number;
    /** For how long a host may start machines after its lease has ended, in milliseconds. */
    clusterGraceMs: number;
  };
  log: Log;
}

export interface ClusterMachines {
  readonly moves: { readonly source: MoveSource; readonly target: MoveTarget };
  /** Gives the machines of a lost host to others. Rejects as {@link evacuate} does. */
  evacuate(host: string): Promise<Evacuation[]>;
  readonly drain: HostDrain;
  readonly templates: OpenedTemplates;
  /**
   * Resolves with the host with the most room of those that could resume a machine of this host; with `cold`, of all. Rejects
   * with `failed_precondition` when there is none.
   */
  anotherHost(id: string, options: { cold: boolean }): Promise<string>;
  /** Gives up the disputed copy of a machine that this host keeps. Rejects as {@link dropCopy} does. */
  drop(id: string, signal: AbortSignal): Promise<void>;
  /** Answers requests of other hosts about moves and templates. */
  readonly route: PeerRoute;
  /** Begins to follow what other hosts do. Call it once machines are recovered. */
  start(): void;
  close(): void;
}

export function openClusterMachines(options: ClusterMachinesOptions): ClusterMachines {
  const { cluster, ownership, resources, volumes, call, settings, log } = options;
  const { custody, arrivals, departures } = resources;
  const { gate, disputes } = ownership;
  const closing = new AbortController();
  const { signal } = closing;
  const target = new MoveTarget({
    ...{ cluster, arrivals, volumes, custody, gate, log },
    folder: arrivalsFolder(options.dataDir),
  });
  const takeIn = async (id: string) => (await target.takeIn(id)) || recreation.takeIn(id);
  const rate = new Rate(settings.moveRateMb);
  const templates = openClusterTemplates({
    ...{ cluster, rate, log },
    ...{ claims: options.claims, send: options.send, travel: resources.templateTravel },
  });
  const source = new MoveSource({
    ...{ cluster, call, departures, custody, volumes, ownership, takeIn, log },
    folderOf: options.folderOf,
    rate,
    closing: signal,
  });
  const recreation = new Recreation({
    ...{ cluster, custody, log },
    anew: ({ owner, ...origin }) => {
      const { app, name, address, epoch } = owner;
      return arrivals.anew({ ...origin, app, name, address, epoch });
    },
    closing: signal,
  });
  const drain = new HostDrain({
    source,
    choose: (id, promised) => choose(id, { cold: false, promised }, { cluster, departures }),
    records: () => custody.records(),
    changed: () => options.factsChanged?.(),
  });
  const lost = new LostHosts({ cluster, custody, graceMs: settings.clusterGraceMs, log });
  const recoverMoves = async () => {
    await source.recover();
    await target.recover();
  };
  return {
    moves: { source, target },
    drain,
    async anotherHost(id, { cold }) {
      const [best] = await choose(id, { cold }, { cluster, departures });
      return best as string;
    },
    templates,
    route: async (...all) => (await serveMoves(target, ...all)) || templates.route(...all),
    evacuate: (host) => evacuate(host, cluster),
    async drop(id, limit) {
      await dropCopy(id, { cluster, custodian: custody, disputes, call }, limit);
      ownership.look(id);
    },
    start() {
      ownership.follow(custody, takeIn);
      const what = "finding out about unfinished moves";
      background(untilDone(recoverMoves, { what, log, signal }), what);
      lost.start();
      templates.start();
    },
    close() {
      closing.abort(shuttingDown());
      lost.close();
      templates.close();
      ownership.close();
    },
  };
}

/** What a move under way rejects with. */
function shuttingDown(): HibernautError {
  const message =
    "The platform is shutting down. The machine is on one of the two hosts: see `hibernaut machine list`.";
  return new HibernautError("unavailable", message);
}
