/** Several hosts of a cluster in one process: real stores, views and a real shared directory; no QEMU, no TLS. */
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PeerClient } from "@hibernaut/cluster";
import { KEYS } from "@hibernaut/cluster/keys";
import { HibernautError } from "@hibernaut/domain/errors";
import type { HypervisorIdentity, VmmSpec } from "@hibernaut/hypervisor";
import type { VolumeTravel } from "@hibernaut/volumes";
import { RUN_VARIABLE } from "../../../../scripts/leftovers.mjs";
import type { Cluster, HostLease, LeaseState } from "../../../cluster/src/cluster.ts";
import type { Change, Directory } from "../../../cluster/src/contract.ts";
import { leaveGuests } from "../../../cluster/src/evacuation/left-guests.ts";
import { LocalDirectory } from "../../../cluster/src/local/directory.ts";
import { type ClusterMachines, openClusterMachines } from "../../../cluster/src/machines.ts";
import { arrivingVolumes } from "../../../cluster/src/moves/papers.ts";
import { type OpenOwnership, openOwnership } from "../../../cluster/src/ownership/open.ts";
import { peerCall } from "../../../cluster/src/peer-call.ts";
import { openTemplateClaims } from "../../../cluster/src/templates/claims.ts";
import { DirectoryView } from "../../../cluster/src/view.ts";
import { FakeHost, FakeHypervisor } from "../../../hypervisor/src/fake/index.ts";
import { type FakePlatform, newWorld, type PlatformParts, startPlatform, type World } from "./fake-world.ts";
import { Mortality } from "./mortal.ts";

/** A lease that the test grants and takes. */
export class TestLease implements HostLease {
  state: LeaseState = "live";
  term = 1;
  readonly #listeners = new Set<(state: LeaseState) => void>();

  subscribe(listener: (state: LeaseState) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Another lease begins with `live` after `lost`, or with `anew`. */
  set(state: LeaseState, { anew = this.state === "lost" } = {}): void {
    if (state === "live" && anew) this.term += 1;
    this.state = state;
    for (const listener of [...this.#listeners]) listener(state);
  }
}

/** A host's way to the directory, which the test cuts. */
class Cable {
  cut = false;
  #broken = new AbortController();

  set(cut: boolean): void {
    this.cut = cut;
    if (cut) this.#broken.abort();
    else this.#broken = new AbortController();
  }

  through(directory: Directory): Directory {
    const attempt = <T>(work: () => Promise<T>): Promise<T> => (this.cut ? Promise.reject(away()) : work());
    const watch = (prefix: string, after: number, signal: AbortSignal) => this.#watch(directory, prefix, after, signal);
    return {
      get: (key, signal) => attempt(() => directory.get(key, signal)),
      list: (prefix, signal) => attempt(() => directory.list(prefix, signal)),
      transact: (conditions, changes, signal) => attempt(() => directory.transact(conditions, changes, signal)),
      lease: (ttlMs, signal) => attempt(() => directory.lease(ttlMs, signal)),
      watch,
      close: () => directory.close(),
    };
  }

  async *#watch(directory: Directory, prefix: string, after: number, signal: AbortSignal) {
    if (this.cut) throw away();
    const broken = this.#broken.signal;
    yield* directory.watch(prefix, after, AbortSignal.any([signal, broken]));
    if (!signal.aborted) throw away();
  }
}

function away(): HibernautError {
  return new HibernautError("unavailable", "The cluster directory does not answer: it was cut off.");
}

/** Counts the VMMs of a machine on all hosts. */
class ClusterFakeHost extends FakeHost {
  readonly #all: () => FakeHost[];
  readonly #seen: (vmms: number) => void;

  constructor(all: () => FakeHost[], seen: (vmms: number) => void) {
    super();
    this.#all = all;
    this.#seen = seen;
  }

  override launch(spec: VmmSpec, identity: HypervisorIdentity): ReturnType<FakeHost["launch"]> {
    const launched = super.launch(spec, identity);
    this.#seen(this.#all().reduce((sum, host) => sum + host.of(spec.machineId).length, 0));
    return launched;
  }
}

/** A host comes up, or its lease ends. */
export function hostChange(name: string, up: boolean): Change {
  const record = { name, draining: false, memoryMb: { total: 1024, free: 1024 } };
  return { key: `${KEYS.hosts}${name}`, value: up ? JSON.stringify(record) : null };
}

/** What a host's platform is started with. */
export interface HostParts extends PlatformParts {
  /** Kills it at a step. */
  mortality?: Mortality;
}

/** One host of the cluster. */
export interface TestHost {
  name: string;
  world: World;
  lease: TestLease;
  cluster: Cluster;
  ownership: OpenOwnership;
  moves: ClusterMachines["moves"];
  machines: ClusterMachines;
  platform: FakePlatform;
  /** Cuts the host off from the directory, or connects it again. Its lease is another matter. */
  cut(off: boolean): void;
  /** Ends the platform, unless it was killed, and starts the next one on what it left. */
  restart(parts?: HostParts): Promise<void>;
  /** Ends the platform. Its guests run on. */
  stop(): Promise<void>;
}

export interface ClusterWorld {
  hosts: Map<string, TestHost>;
  host(name: string): TestHost;
  /** What is in the directory. */
  directory: Directory;
  /** The most VMMs that one machine had at a time, on all hosts. More than one is a fault. */
  readonly mostPerMachine: number;
  dispose(): Promise<void>;
}

/** Starts platforms by these names in one cluster, which has the app `shop`. */
export async function newClusterWorld(
  names: readonly string[],
  { parts = {} }: { parts?: PlatformParts } = {},
): Promise<ClusterWorld> {
  const folder = await mkdtemp(
    join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), `hibernaut-${process.env[RUN_VARIABLE] ?? "fake"}-cluster-`),
  );
  const file = join(folder, "directory.db");
  const directory = new LocalDirectory(file);
  const shop = { name: "shop", createdAt: new Date().toISOString() };
  await directory.transact(
    [],
    [
      { key: `${KEYS.apps}shop`, value: JSON.stringify(shop) },
      ...names.flatMap((name) => [{ key: `${KEYS.members}${name}`, value: "{}" }, hostChange(name, true)]),
    ],
  );
  const hosts = new Map<string, TestHost>();
  let mostPerMachine = 0;
  const fakes: FakeHost[] = [];
  const ports = new Map<string, number>();
  for (const name of names) {
    const world = await newWorld();
    world.host = new ClusterFakeHost(
      () => fakes,
      (vmms) => (mostPerMachine = Math.max(mostPerMachine, vmms)),
    );
    fakes.push(world.host);
    world.store.apps.insert(shop);
    hosts.set(name, await openHost(name, { world, file, parts, ports }));
  }
  return {
    hosts,
    host(name) {
      const found = hosts.get(name);
      if (found === undefined) throw new Error(`there is no host ${name}`);
      return found;
    },
    directory,
    get mostPerMachine() {
      return mostPerMachine;
    },
    async dispose() {
      for (const host of hosts.values()) {
        await host.stop();
        await host.world.dispose();
      }
      await directory.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

interface OpenHostOptions {
  world: World;
  file: string;
  parts: PlatformParts;
  /** Where hosts listen that are up. */
  ports: Map<string, number>;
}

async function openHost(name: string, { world, file, parts, ports }: OpenHostOptions): Promise<TestHost> {
  const cable = new Cable();
  const lease = new TestLease();
  const note = (fields: Record<string, unknown>, message: string) => void world.logged.push({ fields, message });
  const log = { warn: note, info: note };
  let closing: (() => Promise<void>) | undefined;
  const start = async ({ mortality = new Mortality(), ...own }: HostParts) => {
    const direct = new LocalDirectory(file);
    const cabled = cable.through(direct);
    const guarded = mortality.guard(cabled, "directory", { async: ["transact"] });
    const directory: Directory = {
      get: (...all) => guarded.get(...all),
      list: (...all) => guarded.list(...all),
      transact: (...all) => guarded.transact(...all),
      lease: (...all) => guarded.lease(...all),
      watch: (...all) => cabled.watch(...all),
      close: () => direct.close(),
    };
    const view = new DirectoryView({ directory });
    view.start();
    if (!cable.cut) await view.reached((await directory.list(KEYS.members)).revision);
    const record = { id: "c1", region: "local", createdAt: "", authority: "" };
    const peers = { target: () => ({ host: "127.0.0.1", port: 0, tls: {} }) };
    const cluster: Cluster = { host: name, record, directory, view, lease, peers };
    const ownership = openOwnership(cluster, log);
    const claims = openTemplateClaims(cluster, log);
    let volumes: VolumeTravel | undefined;
    const wrap: NonNullable<PlatformParts["wrap"]> = (deps) => {
      const owned = mortality.wrap({ ...deps, ownership, templateClaims: claims });
      volumes = owned.volumes.travel;
      return own.wrap?.(owned) ?? owned;
    };
    const platform = await startPlatform(world, {
      ...own,
      wrap,
      arrivingVolumes,
      newerOn: (volume) => ownership.newerVolumeOn(volume),
      onVolumeDestroyed: (volume) => ownership.volumeDestroyed(volume),
    });
    const client = new PeerClient({
      ...{ peers, view, service: "peer" },
      connect(other) {
        const port = cable.cut ? undefined : ports.get(other);
        const unreachable = new HibernautError("host_unreachable", `Host ${other} is away.`);
        if (port === undefined || mortality.dead) throw unreachable;
        return connect({ port, host: "127.0.0.1" });
      },
    });
    const call = peerCall(client);
    const { arrivals, departures, templateTravel } = platform;
    const custody = mortality.guard(platform.custody, "custody", { async: ["takeAway"], sync: ["takeIn"] });
    const resources = {
      ...{ departures, custody, templateTravel },
      arrivals: mortality.guard(arrivals, "arrivals", { async: ["place"] }),
    };
    const folderOf = (id: string) => join(world.folder, "machines", id);
    const settings = { moveRateMb: 0, clusterGraceMs: 60_000 };
    const machines = openClusterMachines({
      ...{ cluster, ownership, claims, resources, call, dataDir: world.folder, folderOf, settings, log },
      send: (...request) => client.send(...request),
      volumes: volumes ?? platform.volumes.travel,
    });
    const { moves } = machines;
    const server = createServer((incoming, response) => void machines.route(incoming, response));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    ports.set(name, (server.address() as { port: number }).port);
    Object.assign(host, { cluster, ownership, moves, machines, platform });
    machines.start();
    const leave = async () => {
      closing = undefined;
      ports.delete(name);
      machines.close();
      client.close();
      server.close();
      server.closeAllConnections();
      await view.close();
    };
    void mortality.death.promise.then(leave);
    closing = async () => {
      await leave();
      world.releaseBoots();
      await platform.close();
      await mortality.ended();
      await ownership.published();
      await leaveGuests({
        cluster,
        hypervisor: new FakeHypervisor(world.host, world.identity),
        records: () => world.store.machines.list(),
        log,
      });
      await direct.close();
    };
  };
  const host = {
    name,
    world,
    lease,
    cut: (off: boolean) => cable.set(off),
    async restart(own: HostParts = parts) {
      await closing?.();
      await start(own);
    },
    async stop() {
      await closing?.();
    },
  } as TestHost;
  await start(parts);
  return host;
}
