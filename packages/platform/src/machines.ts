/** Apps and their machines, and what these need from parts that need machines. */
import { availableParallelism } from "node:os";
import { type Api, acceptPlain, type LocalConnections } from "@hibernaut/api";
import { CheckResults, passOnce } from "@hibernaut/checks";
import { ownPorts } from "@hibernaut/domain/own-ports";
import { hotPagesFile } from "@hibernaut/hypervisor/qemu/hot-pages";
import { imageFolder } from "@hibernaut/images/open";
import { background } from "@hibernaut/lib/background";
import { hostBootId } from "@hibernaut/lib/boot-id";
import { readPageRanges } from "@hibernaut/lib/page-ranges";
import { Port } from "@hibernaut/lib/port";
import { Semaphore } from "@hibernaut/lib/semaphore";
import { openMachines, Quotas, type Resources } from "@hibernaut/machines";
import { appFolders, DiskQuota } from "@hibernaut/machines/disk-quota";
import { ConnectedProxies } from "@hibernaut/proxy";
import { openSecrets } from "@hibernaut/secrets/open";
import { SnapshotStore } from "@hibernaut/snapshots";
import { VolumeFiles } from "@hibernaut/volumes/files";
import { Volumes } from "@hibernaut/volumes/open";
import { quotaOf } from "./quota-settings.ts";
import type { Reach } from "./reach.ts";
import { KeptCommands } from "./sandboxes.ts";

export type Machines = Awaited<ReturnType<typeof openAllMachines>>;

/** Opens them. Nothing is started yet: machines are recovered later. */
export async function openAllMachines(reach: Reach) {
  const { settings, log, open, files, bundles, counts, tracing, hypervisor, carryOvers, refusedHypervisor } = reach;
  const { store, sealed, images, hostMemory, cluster, publish, owning, network, histories } = reach;
  const machines = new Port<Resources["machines"]>("the machines");
  const localApi = new Port<Api>("the API");
  const local: LocalConnections = new WeakMap();
  const checkResults = new CheckResults();
  const proxies = new ConnectedProxies();
  const kept = new KeptCommands();

  const bootId = await hostBootId();
  const snapshots = new SnapshotStore({
    machineFolder: (id) => files.paths(id).folder,
    refusedHypervisor,
    bootId,
    hotPages: (id) => readPageRanges(hotPagesFile(files.paths(id).memory)),
    onTrouble: (machine, reason) => log.warn({ machine, reason }, "a snapshot could not be sealed"),
  });
  open.defer(() => snapshots.close());
  const quotas = new Quotas({ store, defaults: quotaOf(settings) });
  const volumeFiles = new VolumeFiles(settings.dataDir);
  const folders = { files, volumeFiles, imageFolder: (digest: string) => imageFolder(settings.dataDir, digest) };
  const diskQuota = new DiskQuota({
    quotaMb: settings.diskQuotaMb,
    foldersOf: (app) =>
      appFolders(
        { machines: store.machines.list(app), templates: store.templates.list(app), volumes: store.volumes.list(app) },
        folders,
      ),
  });
  const volumes = new Volumes({
    newerOn: (volume) => owning?.ownership.newerVolumeOn(volume),
    onDestroyed: (volume) => owning?.ownership.volumeDestroyed(volume),
    store,
    files: volumeFiles,
    requireDisk: (app, bytes) => diskQuota.require(app, bytes),
    requireRoom(app, gb) {
      owning?.requireLasting(app);
      quotas.requireVolume(app, gb);
    },
    whilePaused: (machineId, work) => machines.filled.whilePaused(machineId, work),
    schedule: { intervalMs: settings.snapshotIntervalH * 3_600_000, byDefault: settings.scheduledSnapshots, log },
    onTrouble: (message) => log.warn({}, message),
  });
  const resources = openMachines({
    hypervisor,
    carryOvers,
    store,
    images,
    network: network.network,
    snapshots,
    bundles,
    secrets: openSecrets(sealed),
    volumes,
    files,
    diskQuota,
    // A boot under emulation keeps one CPU busy.
    bootSlots: new Semaphore(Math.max(2, availableParallelism())),
    bootId,
    settings,
    quotas,
    log,
    watch: {
      operation(operation) {
        counts.operation(operation);
        tracing?.wakes.operation(operation);
      },
      agentFault: (fault) => counts.agentFault(fault),
    },
    hostMemory,
    hostName: cluster?.host,
    checkResults: (id) => checkResults.of(id),
    subscribeToChecks: (listener) => checkResults.subscribe(listener),
    passChecks: passOnce,
    finishRequests: (id) => proxies.finished(id, settings.drainTimeoutMs),
    holdBack: (id) => proxies.holdBack(id),
    ownPorts: ownPorts(settings),
    ...(owning !== undefined && { ownership: owning.ownership, templateClaims: owning.templateClaims }),
    letGo: (id, sleep) => proxies.letGo(id, sleep),
    onKeptCommand: (...command) => kept.take(...command),
    // Served like any other connection, except that it says which machine is asking.
    onLocalConnection: (machineId, connection) => {
      local.set(connection, machineId);
      acceptPlain(localApi.filled, connection);
    },
  });
  machines.fill(resources.machines);
  histories.machines = resources.machines;
  open.defer(() => resources.close());
  const clustered = owning?.open({
    ...{ resources, volumes: volumes.travel, settings, dataDir: settings.dataDir, log },
    folderOf: (id) => files.paths(id).folder,
    factsChanged: () => background(publish(), "publishing what this host has"),
  });
  open.defer(() => clustered?.close());
  return { ...reach, resources, volumes, quotas, clustered, localApi, local, checkResults, proxies, kept };
}
