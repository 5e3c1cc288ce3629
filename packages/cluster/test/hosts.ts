/**
 * A cluster as its users run it: several platforms, each `hibernaut serve` in a process and a data directory of its own,
 * joined through a real etcd. Everything ends with {@link Hosts.dispose}.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Cluster, HibernautClient } from "@hibernaut/client";
import { guestsIn } from "@hibernaut/hypervisor/qemu/find-processes";
import { killProcess } from "@hibernaut/hypervisor/qemu/process";
import { uninstallBridge } from "@hibernaut/network/bridge/remove";
import { vi } from "vitest";
import { addPreparedImages } from "../../platform/test/helpers/prepared-images.ts";
import { dataFolder } from "../../platform/test/helpers/qemu-world.ts";
import { Served } from "../../platform/test/helpers/served.ts";
import { slowed } from "../../platform/test/helpers/slow.ts";
import { initCluster, joinCluster } from "../src/join.ts";
import { type Etcd, startEtcd } from "./etcd.ts";

/** Only a fault reaches it. */
const SETTLE_MS = slowed(60_000);
const NAMES = ["a", "b", "c", "d", "e"];
/** Loopback and free ports, and short leases, so that a test need not wait long for a lost host. */
const ENV = {
  HIBERNAUT_PEER_LISTEN: "127.0.0.1:0",
  HIBERNAUT_CLUSTER_LEASE: "4s",
  HIBERNAUT_NETWORK: "user",
};

interface HostsOptions {
  /** How many hosts. They are named a, b, c and so on. */
  count?: number;
  /** How many members etcd has. */
  etcdMembers?: number;
  /** Settings of all hosts. */
  env?: Record<string, string>;
  /** Copies the images of the QEMU tests into each data directory. Default: true. Without, nothing can be run. */
  images?: boolean;
  /** Makes no cluster: the hosts are neither joined nor started. */
  alone?: boolean;
}

/** One host. */
export class TestHost {
  readonly name: string;
  readonly dataDir: string;
  readonly served: Served;
  readonly #dispose: () => Promise<void>;

  constructor(name: string, dataDir: string, env: Record<string, string>, dispose: () => Promise<void>) {
    this.name = name;
    this.dataDir = dataDir;
    this.served = new Served(dataDir, env);
    this.#dispose = dispose;
  }

  get client(): HibernautClient {
    return this.served.client;
  }

  get settings(): { dataDir: string; region: string } {
    return { dataDir: this.dataDir, region: "local" };
  }

  /** The admin token that this host made for itself. */
  async token(): Promise<string> {
    const text = await readFile(join(this.dataDir, "config.json"), "utf8");
    return (JSON.parse(text) as { api_token: string }).api_token;
  }

  /** QEMU processes of this host. */
  guests() {
    return guestsIn(this.dataDir);
  }

  /** The cluster as this host sees it. */
  cluster(): Promise<Cluster> {
    return this.client.getCluster();
  }

  /** Kills the platform and its guests, as a power cut does. */
  async lose(): Promise<void> {
    await this.served.kill();
    for (const guest of await this.guests()) await killProcess(guest);
  }

  async dispose(): Promise<void> {
    try {
      await this.served.kill();
    } finally {
      for (const guest of await this.guests()) await killProcess(guest);
      await uninstallBridge(this.dataDir);
      await this.#dispose();
    }
  }
}

export interface Hosts extends AsyncDisposable {
  etcd: Etcd;
  all: TestHost[];
  /** The host of that name. */
  host(name: string): TestHost;
  /** Waits until every host that runs sees exactly these hosts up. */
  settled(...names: string[]): Promise<void>;
  /** Lets a host that was added with `alone` join, and starts it. */
  join(host: TestHost): Promise<void>;
  dispose(): Promise<void>;
}

/** Starts hosts that form one cluster, and waits until each sees all others up. */
export async function startHosts({
  count = 3,
  etcdMembers = 1,
  env = {},
  images = true,
  alone = false,
}: HostsOptions = {}): Promise<Hosts> {
  const all: TestHost[] = [];
  const etcd = await startEtcd({ members: etcdMembers });
  const dispose = async () => {
    await Promise.all(all.map((host) => host.dispose()));
    await etcd.dispose();
  };
  const host = (name: string) => {
    const found = all.find((each) => each.name === name);
    if (found === undefined) throw new Error(`there is no host ${name}`);
    return found;
  };
  const settled = async (...names: string[]) => {
    for (const name of names)
      await vi.waitFor(
        async () => {
          const { hosts } = await host(name).cluster();
          // A host that is starting takes no machines yet.
          const up = hosts.filter(({ state, draining }) => state === "up" && !draining).map((each) => each.name);
          if (up.join() !== names.join()) throw new Error(`${name} sees ${up.join() || "nobody"} up`);
        },
        { timeout: SETTLE_MS, interval: 50 },
      );
  };
  const joinOne = async (joining: TestHost) => {
    const { token } = await host("a").client.createJoinToken();
    await joinCluster({ settings: joining.settings, name: joining.name, version: "0.1.0", peer: "127.0.0.1", token });
    await joining.served.start();
  };
  try {
    for (const name of NAMES.slice(0, count)) {
      const { path, dispose: remove } = await dataFolder();
      all.push(new TestHost(name, path, { ...ENV, ...env }, remove));
      if (images) await addPreparedImages(path);
    }
    if (!alone) {
      const [first, ...others] = all as [TestHost, ...TestHost[]];
      const directory = { etcd: etcd.endpoints };
      await initCluster({ settings: first.settings, name: first.name, peer: "127.0.0.1", directory });
      await first.served.start();
      for (const other of others) await joinOne(other);
      await settled(...all.map(({ name }) => name));
    }
    return { etcd, all, host, settled, join: joinOne, dispose, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** Where a host keeps what it has of its cluster. */
export function placeFile(host: TestHost): string {
  return join(host.dataDir, "cluster/cluster.json");
}
