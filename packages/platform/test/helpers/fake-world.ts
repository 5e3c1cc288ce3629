/** A platform on a fake host: real store, real snapshot files, no QEMU. */
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AppRestores, Backups, BackupTargets } from "@hibernaut/backup";
import { CURRENT_PROTOCOL } from "@hibernaut/domain/agent-protocol";
import type { MachineConfig } from "@hibernaut/domain/config";
import { QUOTA_NAMES, type Quota, type QuotaName } from "@hibernaut/domain/quota";
import type { VolumeRecord } from "@hibernaut/domain/volume";
import type { Hypervisor, HypervisorIdentity } from "@hibernaut/hypervisor";
import { imageFolder } from "@hibernaut/images/open";
import { Semaphore } from "@hibernaut/lib/semaphore";
import { openMachines, Quotas, type Resources } from "@hibernaut/machines";
import { appFolders, DiskQuota } from "@hibernaut/machines/disk-quota";
import { MachineFiles } from "@hibernaut/machines/files";
import { openSecrets, openVault } from "@hibernaut/secrets/open";
import type { Store } from "@hibernaut/store";
import { openStore } from "@hibernaut/store/open";
import { VolumeFiles } from "@hibernaut/volumes/files";
import { Volumes } from "@hibernaut/volumes/open";
import { RUN_VARIABLE } from "../../../../scripts/leftovers.mjs";
import { findTool } from "../../../../scripts/lib/test-tools.mjs";
import { FakeHost, FakeHypervisor } from "../../../hypervisor/src/fake/index.ts";
import { refusedCarryOver } from "../../../hypervisor/src/qemu/carry-over.ts";
import { FailedCarryOvers } from "../../../hypervisor/src/qemu/failed-carry-overs.ts";
import type { MachineDependencies } from "../../../machines/src/dependencies.ts";
import { UserNetwork } from "../../../network/src/user.ts";
import { SnapshotStore, type SnapshotStoreOptions } from "../../../snapshots/src/store.ts";
import { appHome } from "../../src/app-home.ts";
import { FakeImages } from "./fake-images.ts";

/** Memory of test machines: small, so that thousands of memory files fit anywhere. */
export const SMALL: MachineConfig = { image: "app:1", guest: { memory_mb: 128 }, services: [{ internal_port: 8080 }] };

/** A layer is a small file: the fake mounts nothing. */
class FastFiles extends MachineFiles {
  override async freshLayer(machineId: string): Promise<void> {
    await writeFile(this.paths(machineId).layer, "");
  }
}

/** Likewise for volumes: files of their size, without a file system. */
export class FastVolumeFiles extends VolumeFiles {
  override async format(): Promise<void> {}
}

export interface World {
  folder: string;
  host: FakeHost;
  images: FakeImages;
  /** What the next platform finds: change it to see snapshots refused. */
  identity: Partial<HypervisorIdentity>;
  bundleVersion: string;
  /** What the agents of guest bundles speak, by version; the present protocol when absent. */
  protocols: Map<string, number>;
  /** Which boot of the host the next platform finds itself in. */
  bootId: string;
  store: Store;
  logged: { message: string; fields: Record<string, unknown> }[];
  /** Holds every boot from now on, until the returned function is called or the boots are released. */
  holdBoots(): () => void;
  /** Lets all boots continue. Call it before the platform is closed, which waits for boots in progress. */
  releaseBoots(): void;
  dispose(): Promise<void>;
}

interface WorldOptions {
  /** The clock that usage is measured with, in milliseconds since 1970. By default, the host's. */
  now?(): number;
  /** Puts an earlier platform's data into the directory before it is opened. */
  fill?(folder: string): Promise<void>;
}

/** Memory-backed where possible: these tests prove order, not that the kernel can fsync. */
const PLACE = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
const newFolder = () => mkdtemp(join(PLACE, `hibernaut-${process.env[RUN_VARIABLE] ?? "fake"}-`));

/** An empty database with the present schema, made once: all migrations take longer than many a test. */
let empty: Promise<Buffer> | undefined;

async function emptyDatabase(): Promise<Buffer> {
  const folder = await newFolder();
  try {
    const file = join(folder, "hibernaut.db");
    openStore(file).close();
    return await readFile(file);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Makes a directory with the store of a platform that has nothing yet, and a host for it. */
export async function newWorld({ fill = async () => {}, now = Date.now }: WorldOptions = {}): Promise<World> {
  const folder = await newFolder();
  await fill(folder);
  await Promise.all(["machines", "run"].map((name) => mkdir(join(folder, name), { recursive: true })));
  const database = join(folder, "hibernaut.db");
  if (!existsSync(database)) await writeFile(database, await (empty ??= emptyDatabase()));
  const store = openStore(database, now);
  const held = new Set<() => void>();
  const world: World = {
    folder,
    host: new FakeHost(),
    images: new FakeImages(),
    identity: {},
    bundleVersion: "bundle-1",
    protocols: new Map(),
    bootId: "boot-1",
    store,
    logged: [],
    holdBoots() {
      // A cluster's hosts have another one in its place.
      const { host } = world;
      const { promise, resolve } = Promise.withResolvers<void>();
      host.hold.boot = promise;
      const release = () => {
        if (host.hold.boot === promise) delete host.hold.boot;
        held.delete(release);
        resolve();
      };
      held.add(release);
      return release;
    },
    releaseBoots() {
      for (const release of held) release();
    },
    async dispose() {
      store.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
  return world;
}

/** A platform in a world. */
export interface FakePlatform extends Resources {
  readonly quotas: Quotas;
  readonly volumes: Volumes;
  readonly backups: Backups;
  readonly backupTargets: BackupTargets;
  readonly appRestores: AppRestores;
  /** What that is made of. */
  readonly restoreParts: ConstructorParameters<typeof AppRestores>[0];
}

export interface PlatformParts {
  hypervisor?: Hypervisor;
  bootSlots?: number;
  /** What each app may take of the disk. Default: 0, without a limit. */
  diskQuotaMb?: number;
  snapshotQemu?: "series" | "exact";
  hotPages?: SnapshotStoreOptions["hotPages"];
  settings?: Partial<MachineDependencies["settings"]>;
  /** How backups to targets are made. */
  targets?: Partial<ConstructorParameters<typeof BackupTargets>[0]>;
  /** What apps may have. By default, everything. */
  quota?: Partial<Quota>;
  /** The ids of volumes that arrive from other hosts. Default: none. */
  arrivingVolumes?(folder: string): Promise<Set<string>>;
  /** The host that has a newer copy of a volume. Default: none. */
  newerOn?(volume: VolumeRecord): string | undefined;
  onVolumeDestroyed?(volume: VolumeRecord): void;
  /** Throws when the app may get no volume. By default, it may. */
  refuseVolume?(app: string): void;
  wrap?(deps: MachineDependencies): MachineDependencies;
}

/** Starts a platform in the world, as after a restart, and lets it recover. */
export async function startPlatform(world: World, parts: PlatformParts = {}): Promise<FakePlatform> {
  const files = new FastFiles(world.folder, 64);
  const note = (fields: Record<string, unknown>, message: string) => void world.logged.push({ fields, message });
  const bundle = (version: string) => ({
    version,
    protocol: world.protocols.get(version) ?? CURRENT_PROTOCOL,
    kernel: "",
    initrd: "",
  });
  const none = Object.fromEntries(QUOTA_NAMES.map((name) => [name, 0])) as Record<QuotaName, number>;
  const defaults = { ...none, ...parts.quota };
  const quotas = new Quotas({ store: world.store, defaults });
  const volumeFiles = new FastVolumeFiles(world.folder);
  const folders = { files, volumeFiles, imageFolder: (digest: string) => imageFolder(world.folder, digest) };
  const diskQuota = new DiskQuota({
    quotaMb: parts.diskQuotaMb ?? 0,
    foldersOf: (app) =>
      appFolders(
        {
          machines: world.store.machines.list(app),
          templates: world.store.templates.list(app),
          volumes: world.store.volumes.list(app),
        },
        folders,
      ),
  });
  const volumes = new Volumes({
    store: world.store,
    files: volumeFiles,
    requireRoom(app, gb) {
      parts.refuseVolume?.(app);
      quotas.requireVolume(app, gb);
    },
    requireDisk: (app, bytes) => diskQuota.require(app, bytes),
    ...(parts.newerOn && { newerOn: parts.newerOn }),
    ...(parts.onVolumeDestroyed && { onDestroyed: parts.onVolumeDestroyed }),
    whilePaused: (id, work) => resources.machines.whilePaused(id, work),
    onTrouble: (message) => note({}, message),
  });
  const carryOvers = await FailedCarryOvers.open(world.folder);
  const snapshots = new SnapshotStore({
    machineFolder: (id) => files.paths(id).folder,
    refusedHypervisor: (was, now) =>
      refusedCarryOver(was, now, { accept: parts.snapshotQemu ?? "series", failed: carryOvers.all }),
    bootId: world.bootId,
    hotPages: parts.hotPages ?? (async () => [[0, 1]]),
    onTrouble: (machine, reason) => note({ machine, reason }, "a snapshot could not be sealed"),
  });
  const deps: MachineDependencies = {
    hypervisor: parts.hypervisor ?? new FakeHypervisor(world.host, world.identity),
    store: world.store,
    images: world.images,
    network: new UserNetwork(),
    carryOvers,
    snapshots,
    secrets: openSecrets({ store: world.store.secrets, keyFile: join(world.folder, "secrets.key") }),
    bundles: {
      get current() {
        return bundle(world.bundleVersion);
      },
      get: bundle,
    },
    volumes,
    files,
    diskQuota,
    bootSlots: new Semaphore(parts.bootSlots ?? 8),
    bootId: world.bootId,
    quotas,
    settings: {
      region: "local",
      proxy: "inside",
      suspendMaxMemoryMb: 2048,
      bootTimeoutMs: 5000,
      readyTimeoutMs: 1000,
      resumeTimeoutMs: 5000,
      suspendTimeoutMs: 5000,
      hookTimeoutMs: 1000,
      flushTimeoutMs: 10_000,
      wakeTimeoutMs: 10_000,
      slowFactor: 1,
      keepAwakeMaxS: 3600,
      logMaxMb: 16,
      logRateMb: 1,
      logLines: 5000,
      proxySuffixes: ["localhost"],
      reservedHostnames: [],
      apiListen: { host: "127.0.0.1", port: 0 },
      drainSuspends: 2,
      resumeOnBoot: "on",
      scrubIntervalH: 24,
      scrubRateMb: 1024,
      keepWarmS: 0,
      keepWarmMemoryMb: 1024,
      prewarmTimeoutMs: 60_000,
      prewarmSettleMs: 0,
      memoryReserveMb: 0,
      // Thousands of machines, and none of them needs memory.
      memoryOvercommit: 0,
      ...parts.settings,
    },
    log: { info: note, warn: note, error: note },
  };
  const resources: Resources = openMachines(parts.wrap?.(deps) ?? deps);
  const backups: Backups = new Backups({
    refuse: () => backupTargets.refuseCopies(),
    dataDir: world.folder,
    store: world.store,
    openStore,
    machineCopies: resources.machineCopies,
    commands: resources,
    volumes,
    log: { info: note, warn: note },
  });
  const backupTargets: BackupTargets = new BackupTargets({
    dataDir: world.folder,
    backups,
    vault: openVault({ store: world.store.secrets, keyFile: join(world.folder, "secrets.key") }),
    outbox: world.store.outbox,
    version: "0.1.0",
    settings: { restic: findTool("restic"), backupVerify: "sample" },
    log: { info: note, warn: note },
    ...parts.targets,
  });
  const restoreParts = {
    ...{ dataDir: world.folder, targets: backupTargets, resources, images: deps.images, openStore, openSecrets },
    ...{ home: appHome(resources), secrets: deps.secrets, log: { warn: note } },
  };
  const appRestores = new AppRestores(restoreParts);
  await backups.recover();
  await backupTargets.recover();
  await volumes.recover(await parts.arrivingVolumes?.(world.folder));
  await resources.recover();
  await appRestores.recover();
  const close = async () => {
    await backupTargets.close();
    await backups.close();
    await resources.close();
    // As the platform does: a seal that is being written would be in the way of the world's removal.
    await snapshots.close();
  };
  return { ...resources, quotas, volumes, backups, backupTargets, appRestores, restoreParts, close };
}

/** An app with one running machine. */
export async function runningMachine(
  { apps, machines }: Resources,
  config: Partial<MachineConfig> = {},
): Promise<string> {
  apps.create("shop");
  const { record } = await machines.create("shop", { config: { ...SMALL, ...config } });
  await machines.wait("shop", record.id, ["running"], { timeoutMs: 5000 });
  return record.id;
}
