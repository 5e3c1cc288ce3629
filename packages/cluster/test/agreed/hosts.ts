/** Several hosts in one process that share their records through one directory file. Only their hypervisors are fakes. */
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { makeKey } from "@hibernaut/secrets/key";
import { openSecrets } from "@hibernaut/secrets/open";
import type { SecretStore } from "@hibernaut/store";
import {
  type FakePlatform,
  newWorld,
  type PlatformParts,
  startPlatform,
  type World,
} from "../../../platform/test/helpers/fake-world.ts";
import { openAgreed } from "../../src/agreed/open.ts";
import { agreedRecords } from "../../src/agreed/records.ts";
import type { SharedRecords } from "../../src/agreed/shared.ts";
import { requireLasting } from "../../src/app-deletion.ts";
import type { Cluster, Peers } from "../../src/cluster.ts";
import { KEYS } from "../../src/keys.ts";
import { LocalDirectory } from "../../src/local/directory.ts";
import { newerOn } from "../../src/ownership/volumes.ts";
import { put } from "../../src/stored.ts";
import { type OpenTemplateClaims, openTemplateClaims } from "../../src/templates/claims.ts";
import { DirectoryView } from "../../src/view.ts";

/** A host in its cluster. */
export interface TestHost {
  name: string;
  world: World;
  platform: FakePlatform;
  cluster: Cluster;
  shared: SharedRecords;
  claims: OpenTemplateClaims;
  /** What of the store all hosts share. */
  records(): Map<string, object>;
  /** Ends the host as a crash does. `start` begins again on what it stored. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

export interface TestHosts {
  hosts: TestHost[];
  close(): Promise<void>;
}

interface Options {
  names?: string[];
  peers?: Peers;
  parts?: PlatformParts;
}

const RECORD = { id: "test", region: "local", createdAt: "2026-01-01T00:00:00.000Z", authority: "" };
const ALIVE = { state: "live", term: 1, subscribe: () => () => {} } as const;
const NO_PEERS: Peers = {
  target() {
    throw new Error("these hosts do not talk to each other");
  },
};

/** Starts hosts that share one directory. */
export async function startHosts({
  names = ["a", "b", "c"],
  peers = NO_PEERS,
  parts = {},
}: Options = {}): Promise<TestHosts> {
  await using open = new AsyncDisposableStack();
  const worlds = new Map<string, World>();
  for (const name of names) {
    const world = await newWorld();
    open.defer(() => world.dispose());
    worlds.set(name, world);
  }
  const [first, ...others] = worlds.values();
  if (first === undefined) throw new Error("no hosts");
  const file = join(first.folder, "directory.db");
  const founding = new LocalDirectory(file);
  const known = names.flatMap((name) => [put(KEYS.members + name, {}), put(KEYS.hosts + name, { name })]);
  await founding.transact([], [put(KEYS.cluster, RECORD), ...known]);
  await founding.close();
  // All hosts have the same key of the secrets.
  makeKey(join(first.folder, "secrets.key"));
  for (const world of others) await copyFile(join(first.folder, "secrets.key"), join(world.folder, "secrets.key"));

  const hosts: TestHost[] = [];
  for (const [name, world] of worlds) {
    const host = await openHost({ name, world, file, peers, parts });
    open.defer(() => host.stop());
    hosts.push(host);
  }
  const ready = open.move();
  return { hosts, close: () => ready.disposeAsync() };
}

interface HostOptions extends Required<Pick<Options, "peers" | "parts">> {
  name: string;
  world: World;
  file: string;
}

async function openHost({ name, world, file, peers, parts }: HostOptions): Promise<TestHost> {
  let running: (Pick<TestHost, "platform" | "cluster" | "shared" | "claims"> & { stop(): Promise<void> }) | undefined;
  const now = () => {
    if (running === undefined) throw new Error(`host ${name} is not running`);
    return running;
  };
  const host: TestHost = {
    name,
    world,
    get platform() {
      return now().platform;
    },
    get cluster() {
      return now().cluster;
    },
    get shared() {
      return now().shared;
    },
    get claims() {
      return now().claims;
    },
    records: () => agreedRecords(world.store, ""),
    async stop() {
      await running?.stop();
      running = undefined;
    },
    async start() {
      const own = new LocalDirectory(file);
      const view = new DirectoryView({ directory: own });
      view.start();
      const cluster: Cluster = { host: name, record: RECORD, directory: own, view, lease: ALIVE, peers };
      const claims = openTemplateClaims(cluster, { info() {}, warn() {} });
      const platform = await startPlatform(world, {
        ...parts,
        wrap: (deps) => ({ ...deps, templateClaims: claims }),
        refuseVolume: (app) => requireLasting(now().cluster.view, app),
        newerOn: (volume) => newerOn(volume, name, (key) => now().cluster.view.value(key)),
      });
      const keyFile = join(world.folder, "secrets.key");
      const shared = openAgreed({
        cluster,
        store: world.store,
        resources: platform,
        quotas: platform.quotas,
        openSecrets: (store: SecretStore) => openSecrets({ store, keyFile }),
        log: { info() {}, warn() {}, error() {} },
      });
      running = {
        platform,
        cluster,
        shared,
        claims,
        async stop() {
          claims.close();
          shared.close();
          await view.close();
          await own.close();
          await platform.close();
        },
      };
      shared.start();
      await shared.catchUp();
    },
  };
  await host.start();
  return host;
}
