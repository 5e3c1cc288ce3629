/** Opens this host's place in its cluster. Loaded only on a host that has one. */
import { networkInterfaces } from "node:os";
import { HibernautError, isHibernautError } from "@hibernaut/domain/errors";
import { wipe } from "@hibernaut/lib/wipe";
import type { Listen } from "@hibernaut/settings";
import { ClusterAdmin } from "./admin.ts";
import { Admission } from "./admission.ts";
import { HostCertificate, requirePair } from "./certificate.ts";
import type { Cluster, PeerService } from "./cluster.ts";
import { ControlPlane, reachableAt } from "./control-plane.ts";
import { requireGuarded } from "./etcd/guard.ts";
import { openDirectory, placeText, readHome } from "./home.ts";
import { type HostRecord, KEYS } from "./keys.ts";
import { LeaseKeeper } from "./lease.ts";
import { memberWithGrace, requireCluster, requireMember } from "./membership.ts";
import type { Log } from "./ownership/retry.ts";
import { type PeerHandler, PeerListener } from "./peer-listener.ts";
import { clusterPeers, joinAddress } from "./peers.ts";
import { requireFitting } from "./versions.ts";
import { DirectoryView } from "./view.ts";

/** How long the start waits for the directory before it does without: a platform whose etcd is away still serves. */
const START_MS = 5000;

const FORGED =
  "a record of the cluster directory was ignored, because it is not signed with this cluster's key: someone wrote it by hand, or an earlier version did (docs/cluster.md#records-are-signed)";

/** What this host says about itself, except for what the cluster knows. */
export type HostFacts = Omit<HostRecord, "name" | "peer" | "region" | "version" | "startedAt" | "control">;

export interface OpenClusterOptions {
  dataDir: string;
  settings: {
    region: string;
    peerListen: Listen;
    apiListen: Listen;
    proxyMetricsListen?: Listen | undefined;
    clusterLeaseMs: number;
    clusterGraceMs: number;
    insecureEtcd: "on" | "off";
  };
  version: string;
  /** Called at each renewal of the lease. */
  facts(): HostFacts;
  /** The key of the secrets, for the records and for hosts that join. The caller wipes it. */
  secretsKey(): Buffer;
  log: Log & { debug: Log["info"] };
}

/** The cluster, as the composition root has it. */
export interface OpenedCluster extends Cluster {
  readonly admin: ClusterAdmin;
  /** What machines must not reach. */
  readonly controlPlane: ControlPlane;
  /** Says who takes the connections that other hosts make to a service of this one. Until someone does, they are closed. */
  handle(service: PeerService, handler: PeerHandler): void;
  /** Tells the other hosts soon what {@link OpenClusterOptions.facts} says now. */
  publish(): Promise<void>;
  /** Ends the lease and closes every connection between hosts. */
  close(): Promise<void>;
}

/**
 * Opens the peer port, follows the directory and begins this host's lease. A directory that is out of reach is waited for
 * briefly; the lease is then `lost`. Throws `failed_precondition` when this host may not be in the cluster as it is: the
 * message says why.
 */
export async function openCluster(options: OpenClusterOptions): Promise<OpenedCluster> {
  const { dataDir, settings, version, facts, log } = options;
  const home = await readHome(dataDir);
  const { host, region } = home;
  requireRegion(settings.region, region);
  requirePair(home.identity, dataDir);
  requireGuarded(home.directory, settings.insecureEtcd === "on");
  await using opened = new AsyncDisposableStack();

  const certificate = new HostCertificate({
    dataDir,
    home,
    onRenewed: (identity) => listener.renew(identity),
    onFault: (err) => log.warn({ err }, "this host's certificate for the cluster could not be renewed"),
  });
  opened.defer(() => certificate.close());
  const secretsKey = options.secretsKey();
  const directory = await openDirectory(home, { secretsKey, onForged: (key) => log.warn({ key }, FORGED) });
  wipe(secretsKey);
  opened.defer(() => directory.close());
  const view = new DirectoryView({ directory, onFault: (err, what) => log.warn({ err }, what) });
  opened.defer(() => view.close());
  const authority = home.authority.certificate;
  const listener = new PeerListener({
    view,
    authority,
    identity: certificate.identity,
    onRefused: (why, address) => log.debug({ address }, `a connection to the peer port was refused: ${why}`),
  });
  await certificate.start();
  const port = await listener.listen(settings.peerListen);
  opened.defer(() => listener.close());
  const peer = joinAddress({ host: home.peer.host, port: home.peer.port ?? port });

  const { peerListen, apiListen, proxyMetricsListen } = settings;
  const control = () => reachableAt([peerListen, apiListen, proxyMetricsListen], networkInterfaces());
  const startedAt = new Date().toISOString();
  const lease = new LeaseKeeper({
    directory,
    key: `${KEYS.hosts}${host}`,
    record: () => ({ name: host, peer, region, version, startedAt, control: control(), ...facts() }),
    member: (signal) => memberWithGrace(directory, home, settings.clusterGraceMs, signal),
    ttlMs: settings.clusterLeaseMs,
    graceMs: settings.clusterGraceMs,
    onFault: (err) => log.warn({ err }, "this host's lease in the cluster could not be renewed"),
  });

  const signal = AbortSignal.timeout(START_MS);
  const record = await requireCluster(directory, home, signal).catch((error: unknown) => {
    throwIfRefused(error);
    log.warn(
      { err: error },
      `${placeText(home.directory)} is out of reach: this host cannot start machines until it answers`,
    );
    return { id: home.id, region, createdAt: "", authority };
  });
  view.start();
  if (!signal.aborted) {
    await view.reached(1, signal).catch(() => {}); // the view says itself how old it is
    await requireMember(directory, home, signal).catch(throwIfRefused);
    for (const { name, up } of view.hosts()) if (up && name !== host) requireFitting(version, name, up.version);
  }
  await lease.start();
  opened.defer(() => lease.close());
  log.info(
    { cluster: home.id, host, peer, lease: lease.state },
    `host ${host} of a cluster; others reach it at ${peer}`,
  );

  const admission = new Admission({ directory, home, version, view, secretsKey: options.secretsKey, log });
  listener.handle("join", (socket) => admission.accept(socket));
  opened.defer(() => admission.close());
  const identity = () => certificate.identity;
  const peers = clusterPeers({ view, authority, identity });
  const admin = new ClusterAdmin({ cluster: { host, record, directory, view, lease }, home, admission, identity });
  const controlPlane = new ControlPlane({
    place: home.directory,
    view,
    onTrouble: (err, message) => log.warn({ err }, message),
  });
  const closing = opened.move();
  return {
    ...{ host, record, directory, view, lease, peers, admin, controlPlane },
    handle: (service, handler) => listener.handle(service, handler),
    publish: () => lease.publish(),
    close: () => closing.disposeAsync(),
  };
}

function throwIfRefused(error: unknown): void {
  if (isHibernautError(error, "failed_precondition")) throw error;
}

function requireRegion(ours: string, region: string): void {
  if (ours === region) return;
  throw new HibernautError(
    "failed_precondition",
    `HIBERNAUT_REGION is ${ours}, and the region of this host's cluster is ${region}. Set HIBERNAUT_REGION=${region}.`,
    { region: ours, cluster_region: region },
  );
}
