/** Hosts of a cluster in one process, without platforms: what joining and the peer port are tested with. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openDataDir } from "@hibernaut/store/data-dir";
import { openStore } from "@hibernaut/store/open";
import { onTestFinished } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import type { DirectoryPlace } from "../src/home.ts";
import { initCluster, joinCluster } from "../src/join.ts";
import { type OpenedCluster, openCluster } from "../src/open.ts";

export const FACTS = {
  hypervisor: { hypervisor: "fake" },
  guestBundle: "1",
  memoryMb: { total: 1024, free: 512 },
  machines: 0,
  draining: false,
};

/** Where a host would be, not yet in a cluster. */
export async function bareHost() {
  return { dataDir: await tempFolder(), region: "local" };
}

/** A directory in a file, which the hosts of a test share. */
export async function sharedPlace(): Promise<{ local: string }> {
  return { local: join(await tempFolder(), "directory.db") };
}

/** Opens a host's place in its cluster, until the test ends. The data directory is locked, as by a platform. */
export async function openHost(
  settings: { dataDir: string; region: string },
  { version = "0.1.0" } = {},
): Promise<OpenedCluster> {
  const { release } = await openDataDir(settings.dataDir);
  const log = { info() {}, debug() {}, warn() {} };
  try {
    const cluster = await openCluster({
      dataDir: settings.dataDir,
      settings: {
        region: settings.region,
        peerListen: { host: "127.0.0.1", port: 0 },
        apiListen: { host: "127.0.0.1", port: 0 },
        clusterLeaseMs: 60_000,
        clusterGraceMs: 60_000,
        insecureEtcd: "off",
      },
      version,
      facts: () => FACTS,
      secretsKey: () => readFileSync(join(settings.dataDir, "secrets.key")),
      log,
    });
    onTestFinished(async () => {
      await cluster.close();
      release();
    });
    await cluster.view.reached(1);
    return cluster;
  } catch (error) {
    release();
    throw error;
  }
}

/** Makes a cluster of one host, which is up. */
export async function oneHost(name = "a") {
  const place = await sharedPlace();
  const settings = await bareHost();
  await initCluster({ settings, name, peer: "127.0.0.1", directory: place });
  const cluster = await openHost(settings);
  return { place, settings, cluster, token: async (ms = 3_600_000) => (await cluster.admin.createToken(ms)).token };
}

/** Lets a new host join. */
export async function joinHost(token: string, name: string, settings?: { dataDir: string; region: string }) {
  const at = settings ?? (await bareHost());
  await joinCluster({ settings: at, name, version: "0.1.0", peer: "127.0.0.1", token });
  return at;
}

/** Changes where a host finds the directory, in what it keeps of its cluster. */
export function pointAt(folder: string, directory: DirectoryPlace): void {
  const file = join(folder, "cluster.json");
  const home = JSON.parse(readFileSync(file, "utf8")) as object;
  writeFileSync(file, JSON.stringify({ ...home, directory }));
}

/** Gives a host an app. */
export function addApp(dataDir: string, name: string): void {
  const store = openStore(join(dataDir, "hibernaut.db"));
  store.apps.insert({ name, createdAt: new Date().toISOString() });
  store.close();
}
