/** Several hosts in one process that share their records through one directory file. Only their hypervisors are fakes. */
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
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
import type { Directory } from "../../src/contract.ts";
import { KEYS } from "../../src/keys.ts";
import { LocalDirectory } from "../../src/local/directory.ts";
import { newerOn } from "../../src/ownership/volumes.ts";
import { DirectoryView } from "../../src/view.ts";

/** A host in its cluster. */
export interface TestHost {
  name: string;
  world: World;
  platform: FakePlatform;
  cluster: Cluster;
  shared: SharedRecords;
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
  /** Replaces the directory that a host sees. */
  directory?(name: string, directory: Directory): Directory;
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
  directory = (_name, one) => one,
  peers = NO_PEERS,
  parts = {},
}: Options = {}): Promise<TestHosts> {
  await using open = new AsyncDisposableStack();
  const worlds: World[] = [];
  while (worlds.length < names.length) {
    const world = await newWorld();
    open.defer(() => world.dispose());
    worlds.push(world);
  }
  const [first] = worlds;
  if (first === undefined) throw new Error("no hosts");
  const file = join(first.folder, "directory.db");
  const founding = new LocalDirectory(file);
  await founding.transact([], [{ key: KEYS.cluster, value: JSON.stringify(RECORD) }]);
  for (const name of names)
    await founding.transact(
      [],
      [
        { key: KEYS.members + name, value: "{}" },
        { key: KEYS.hosts + name, value: JSON.stringify({ name }) },
      ],
    );
  await founding.close();
  // All hosts have the same key of the secrets: a throw-away secret makes it.
  first.store.apps.insert({ name: "key", createdAt: RECORD.createdAt });
  openSecrets({ store: first.store.secrets, keyFile: join(first.folder, "secrets.key") }).set("key", { KEY: "1" });
  first.store.secrets.remove("key", "KEY");
  first.store.apps.delete("key");
  for (const world of worlds.slice(1))
    await copyFile(join(first.folder, "secrets.key"), join(world.folder, "secrets.key"));

  const hosts: TestHost[] = [];
  for (const [index, name] of names.entries()) {
    const world = worlds[index];
    if (world === undefined) continue;
    const host = await openHost({ name, world, file, directory, peers, parts });
    open.defer(() => host.stop());
    hosts.push(host);
  }
  const ready = open.move();
  return { hosts, close: () => ready.disposeAsync() };
}

async function openHost({
  name,
  world,
  file,
  directory,
  peers,
  parts,
}: Required<Pick<Options, "directory" | "peers" | "parts">> & {
  name: string;
  world: World;
  file: string;
}): Promise<TestHost> {
  let running: { platform: FakePlatform; cluster: Cluster; shared: SharedRecords; stop(): Promise<void> } | undefined;
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
    records: () => agreedRecords(world.store, ""),
    async stop() {
      await running?.stop();
      running = undefined;
    },
    async start() {
      const platform = await startPlatform(world, {
        ...parts,
        refuseVolume: (app) => requireLasting(now().cluster.view, app),
        newerOn: (volume) => newerOn(volume, name, (key) => now().cluster.view.value(key)),
      });
      const own = new LocalDirectory(file);
      const seen = directory(name, own);
      const view = new DirectoryView({ directory: seen });
      view.start();
      const cluster: Cluster = { host: name, record: RECORD, directory: seen, view, lease: ALIVE, peers };
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
        async stop() {
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
