/** Moves of machines from and to this host. */
import { HibernautError } from "@hibernaut/domain/errors";
import { background } from "@hibernaut/lib/background";
import type { Resources } from "@hibernaut/machines";
import type { VolumeTravel } from "@hibernaut/volumes";
import type { Cluster } from "../cluster.ts";
import type { OpenOwnership } from "../ownership/open.ts";
import { untilDone } from "../ownership/retry.ts";
import type { PeerCall } from "../peer-call.ts";
import { arrivalsFolder } from "./arriving.ts";
import type { MoveLog } from "./log.ts";
import { Rate } from "./rate.ts";
import { MoveSource } from "./source.ts";
import { MoveTarget } from "./target.ts";

interface MovesOptions {
  cluster: Cluster;
  ownership: OpenOwnership;
  resources: Pick<Resources, "departures" | "arrivals" | "custody">;
  volumes: VolumeTravel;
  call: PeerCall;
  dataDir: string;
  /** Returns the directory of a machine's files. */
  folderOf(id: string): string;
  /** How fast machines leave this host, all together. 0: as fast as possible. */
  rateMb: number;
  /** Makes a machine that is this host's, and is not stored here, this host's in fact. */
  takeIn(id: string): Promise<unknown>;
  log: MoveLog;
}

/** What {@link openMoves} makes. */
export interface Moves {
  readonly source: MoveSource;
  readonly target: MoveTarget;
  /** Decides about what an earlier platform was sending and receiving, once the directory answers. */
  recover(): void;
  close(): void;
}

/** Opens moves. Call `recover` once machines are recovered. */
export function openMoves({
  cluster,
  ownership,
  resources,
  volumes,
  call,
  dataDir,
  folderOf,
  rateMb,
  takeIn,
  log,
}: MovesOptions): Moves {
  const closing = new AbortController();
  const { signal } = closing;
  const { departures, arrivals, custody } = resources;
  const { gate, departing } = ownership;
  const target = new MoveTarget({ cluster, arrivals, volumes, custody, gate, log, folder: arrivalsFolder(dataDir) });
  const rate = new Rate(rateMb);
  const shared = { cluster, gate, log, closing: signal };
  const look = (id: string) => ownership.look(id);
  const source = new MoveSource({
    ...shared,
    call,
    departures,
    volumes,
    custody,
    departing,
    look,
    folderOf,
    rate,
    takeIn,
  });
  const recover = async () => {
    await source.recover();
    await target.recover();
  };
  return {
    source,
    target,
    recover: () =>
      background(
        untilDone(recover, { what: "finding out about unfinished moves", log, signal }),
        "finding out about unfinished moves",
      ),
    close: () => closing.abort(shuttingDown()),
  };
}

function shuttingDown(): HibernautError {
  const message =
    "The platform is shutting down. The machine is on one of the two hosts: see `hibernaut machine list`.";
  return new HibernautError("unavailable", message);
}
