/** Puts together what a host does with machines because it is in a cluster. Loaded only on such a host. */
import type { Duplex } from "node:stream";
import { abortable } from "@hibernaut/lib/async";
import { messageOf } from "@hibernaut/lib/text";
import type { TemplateClaims } from "@hibernaut/machines";
import { requireLasting } from "./app-deletion.ts";
import type { Cluster } from "./cluster.ts";
import { leaveGuests } from "./evacuation/left-guests.ts";
import { type ClusterMachines, type ClusterMachinesOptions, openClusterMachines } from "./machines.ts";
import { arrivingVolumes } from "./moves/papers.ts";
import { type OpenOwnership, openOwnership } from "./ownership/open.ts";
import { peerCall } from "./peer-call.ts";
import { PeerClient } from "./peer-client.ts";
import { PeerServer } from "./peer-server.ts";
import { openTemplateClaims } from "./templates/claims.ts";
import type { ClusterTemplates } from "./templates/open.ts";

/** How long the end of the platform waits for what is being published, in milliseconds: a transaction or two. */
const PUBLISH_MS = 3_000;

/** What can be done with the hosts and their machines. */
export interface ClusterHosts extends Pick<ClusterMachines, "evacuate" | "drain" | "drop" | "anotherHost"> {
  host: string;
  move: ClusterMachines["moves"]["source"]["move"];
  /** Machines that are stored here and do not start, because the directory does not give them to this host; and why. */
  disputed(): { machine: string; reason: string }[];
}

interface Clustered {
  readonly hosts: ClusterHosts;
  readonly templates: ClusterTemplates;
  /** Begins to follow what other hosts do. Call it once machines are recovered. */
  start(): void;
  close(): void;
}

interface Owning {
  /** For the machines. */
  readonly ownership: OpenOwnership;
  readonly templateClaims: TemplateClaims;
  /** Throws `aborted` while the app is being deleted. */
  requireLasting(app: string): void;
  /** Publishes what others do not know yet, and looks after the guests that run on without their platform. Call it once nothing starts any more. Never rejects. */
  leave(options: Omit<Parameters<typeof leaveGuests>[0], "cluster" | "log">): Promise<void>;
  /** The ids of volumes that have arrived with machines that are not taken in yet. */
  arrivingVolumes(dataDir: string): Promise<Set<string>>;
  /** Once there are machines. */
  open(options: Omit<ClusterMachinesOptions, "cluster" | "ownership" | "claims" | "call" | "send">): Clustered;
}

interface Place extends Cluster {
  handle(service: "peer", handler: (connection: Duplex) => void): void;
}

export function openOwning(cluster: Place, log: ClusterMachinesOptions["log"]): Owning {
  const ownership = openOwnership(cluster, log);
  const claims = openTemplateClaims(cluster, log);
  return {
    ownership,
    templateClaims: claims,
    requireLasting: (app) => requireLasting(cluster.view, app),
    arrivingVolumes,
    async leave(options) {
      await abortable(ownership.published(), AbortSignal.timeout(PUBLISH_MS)).catch((error: unknown) =>
        log.warn({ reason: messageOf(error) }, "what others know of machines is brought up to date at the next start"),
      );
      await leaveGuests({ ...options, cluster, log });
    },
    open(options) {
      const client = new PeerClient({ peers: cluster.peers, view: cluster.view, service: "peer" });
      const machines = openClusterMachines({
        ...{ ...options, cluster, ownership, claims, call: peerCall(client) },
        send: (...request) => client.send(...request),
      });
      const server = new PeerServer();
      server.add(machines.route);
      const { moves, evacuate, drain, drop, anotherHost } = machines;
      return {
        hosts: {
          ...{ host: cluster.host, evacuate, drain, drop, anotherHost },
          move: (...all) => moves.source.move(...all),
          disputed: () => ownership.disputes.list(),
        },
        templates: machines.templates,
        start() {
          machines.start();
          cluster.handle("peer", (connection) => server.accept(connection));
        },
        close() {
          server.close();
          machines.close();
          client.close();
        },
      };
    },
  };
}
