/** The composition root: the only place that knows every part. It constructs and connects them, and starts them in order. */
import { mkdir } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import {
  type Api,
  AuditLog,
  acceptPlain,
  apiTlsOf,
  backupMetrics,
  buildApi,
  certificateMetrics,
  ensureAdminToken,
  type LocalConnections,
  listenForApi,
  verifyToken,
  warmMetrics,
  webhookMetrics,
} from "@hibernaut/api";
import { openCertificates } from "@hibernaut/certs/open";
import { CheckResults, CheckRunner, passOnce, tellChecks } from "@hibernaut/checks";
import { openConnections, RequestPlaces } from "@hibernaut/connections";
import { groupOf } from "@hibernaut/domain/app-network";
import { ownPorts } from "@hibernaut/domain/own-ports";
import { EventStream, openWebhooks } from "@hibernaut/events";
import { BundleStore } from "@hibernaut/guest/bundles";
import { type AcceleratorChoice, proveAccelerator } from "@hibernaut/hypervisor/qemu/accelerator";
import { hotPagesFile } from "@hibernaut/hypervisor/qemu/hot-pages";
import { findJail } from "@hibernaut/hypervisor/qemu/jail/find";
import { openQemu } from "@hibernaut/hypervisor/qemu/open";
import { QMP_FAULTS } from "@hibernaut/hypervisor/qemu/qmp";
import type { FetchImage } from "@hibernaut/images";
import { imageFolder, Library, openImages } from "@hibernaut/images/open";
import { aborted } from "@hibernaut/lib/async";
import { background } from "@hibernaut/lib/background";
import { hostBootId } from "@hibernaut/lib/boot-id";
import { readPageRanges } from "@hibernaut/lib/page-ranges";
import { Port } from "@hibernaut/lib/port";
import { Semaphore } from "@hibernaut/lib/semaphore";
import { openMachines, Quotas, type Resources } from "@hibernaut/machines";
import { HostMemory } from "@hibernaut/machines/admission/host-memory";
import { appFolders, DiskQuota } from "@hibernaut/machines/disk-quota";
import { MachineFiles } from "@hibernaut/machines/files";
import { bundlesInUse, imagesInUse } from "@hibernaut/machines/in-use";
import { droppingRefusal, unfitText } from "@hibernaut/machines/unfit-snapshots";
import { readPrices, Usage, UsageRecorder } from "@hibernaut/metering";
import type { Way } from "@hibernaut/network";
import { startNetwork } from "@hibernaut/network/start";
import { AppAddresses, ConnectedProxies, type RunningCoordinator, startCoordinator } from "@hibernaut/proxy";
import { openAuthority } from "@hibernaut/proxy/outward";
import { makeKey, readKey } from "@hibernaut/secrets/key";
import { openSecrets, openVault } from "@hibernaut/secrets/open";
import { configFolder, type Settings } from "@hibernaut/settings";
import { BUILT_DASHBOARD } from "@hibernaut/settings/places";
import { unknownSettings } from "@hibernaut/settings/unknown-settings";
import { SnapshotStore } from "@hibernaut/snapshots";
import type { Traffic } from "@hibernaut/store";
import { openDataDir } from "@hibernaut/store/data-dir";
import { openStore } from "@hibernaut/store/open";
import { installLastResort, openLog, openTracing, processMetrics } from "@hibernaut/telemetry";
import { VolumeFiles } from "@hibernaut/volumes/files";
import { Volumes } from "@hibernaut/volumes/open";
import type { Logger } from "pino";
import { Registry } from "prom-client";
import { openBackups } from "./backups.ts";
import { openNames } from "./egress.ts";
import { openFlyPort } from "./fly.ts";
import { expireQuarantine, memoryOf, openPlace, openShared, textOf } from "./member.ts";
import { birthMetrics } from "./metrics/births.ts";
import { operationMetrics } from "./metrics/machines.ts";
import { platformMetrics, qmpMetrics } from "./metrics/platform.ts";
import { expirePreviews } from "./previews.ts";
import { quotaOf } from "./quota-settings.ts";
import { KeptCommands, type OpenedSandboxes, openSandboxes } from "./sandboxes.ts";
import { VERSION } from "./version.ts";

/** How often expired volume snapshots are deleted. Their retention is counted in days. */
const VOLUME_SNAPSHOTS_EXPIRE_MS = 60 * 60_000;

interface PlatformReady {
  apiUrl: string;
  /** Where apps answer. Undefined if proxies run in processes of their own. */
  proxyUrl: string | undefined;
  /** Where sandboxes answer. Undefined unless they are on. */
  sandboxUrl: string | undefined;
  /** Where Fly's clients are answered. Undefined unless that is on. */
  flyUrl: string | undefined;
  token: string;
  accelerator: AcceleratorChoice;
}

interface ServeOptions {
  settings: Settings;
  /** Start even if sleeping machines lose their memory because of it. Default: false. */
  dropSnapshots?: boolean;
  /** Ends the platform. Running guests keep running, and the next platform adopts them. */
  signal: AbortSignal;
  /** The environment that says where the CLI's configuration is. By default, that of this process. */
  environment?: NodeJS.ProcessEnv;
  onReady?(ready: PlatformReady): void;
}

/** Runs the platform until the signal is aborted. Rejects with a HibernautError if the platform cannot start. */
export async function serve(options: ServeOptions): Promise<void> {
  const log = openLog(options.settings.logLevel, options.settings.logFormat);
  installLastResort(log);
  const { dataDir, release } = await openDataDir(options.settings.dataDir);
  // The timers that wait for guests do not keep the process alive. This one does, until the platform ends.
  const alive = setInterval(() => {}, 2 ** 30);
  try {
    await runLocked({ ...options, settings: { ...options.settings, dataDir } }, log);
  } finally {
    clearInterval(alive);
    release();
  }
}

async function runLocked(
  { settings, signal, environment = process.env, dropSnapshots = false, onReady }: ServeOptions,
  log: Logger,
): Promise<void> {
  // Closes what was opened, in the reverse order, however the platform ends.
  await using open = new AsyncDisposableStack();
  for (const note of unknownSettings(environment)) log.warn({}, note);

  const prices = settings.priceFile === undefined ? undefined : readPrices(settings.priceFile);

  // The host: what machines are made of and run on.
  const files = new MachineFiles(settings.dataDir, settings.layerSizeMb);
  const { machineRoot, runRoot } = files;
  await Promise.all([machineRoot, runRoot].map((path) => mkdir(path, { recursive: true, mode: 0o700 })));
  const bundles = await BundleStore.open(settings.dataDir, settings.guestBundle);
  const registry = new Registry();
  open.defer(processMetrics(registry));
  const connections = openConnections(settings, registry);
  const tracing = await openTracing({ version: VERSION, settings, environment, registry, log });
  open.defer(() => tracing?.close());
  const counts = operationMetrics(registry);
  const verdict = await proveAccelerator(settings, bundles.current, signal);
  const { accelerator, cpu } = verdict;
  const { jail, found: jailFound, lacks } = await findJail({ ...settings, accelerator });
  // Only root has something to lose that a jail would have kept; doctor tells everyone what is missing.
  const loud = jail === undefined && settings.jail !== "off" && process.getuid?.() === 0;
  log[loud ? "warn" : "info"]({ lacks }, `the jail of machines: ${jailFound}`);
  open.defer(() => jail?.close());
  const qemuOptions = { accelerator, cpu, jail, runRoot, machineRoot, onFault: qmpMetrics(registry, QMP_FAULTS) };
  const { hypervisor, carryOvers, refusedHypervisor } = await openQemu(settings, qemuOptions);
  const store = openStore(join(settings.dataDir, "hibernaut.db"));
  open.defer(() => store.close());
  const keyFile = join(settings.dataDir, "secrets.key");
  const sealed = { store: store.secrets, keyFile };
  const vault = openVault(sealed);
  /** Filled on a host in a cluster, once that is open. */
  const others: { fetchImage?: FetchImage } = {};
  const { images, logins, uploads } = await openImages({
    ...settings,
    inUse: () => imagesInUse(store),
    confine: jail && ((task) => jail.confine(task)),
    fetch: async (...image) => others.fetchImage?.(...image),
  });
  const alive = new Set((await hypervisor.find()).map(({ machineId }) => machineId));
  const hostMemory = new HostMemory();
  /** False until this host can take machines of the cluster. */
  const ready = { drain: (): boolean => true, leaving: (): boolean => false };
  const cluster = await openPlace({
    ...{ dataDir: settings.dataDir, settings, version: VERSION, log },
    facts: () => ({
      hypervisor: textOf(hypervisor.identity()),
      guestBundle: bundles.current.version,
      memoryMb: memoryOf(hostMemory),
      machines: store.machines.list().length,
      draining: ready.drain() || ready.leaving(),
    }),
    secretsKey: () => readKey(keyFile) ?? makeKey(keyFile),
  });
  open.defer(() => cluster?.close());
  const publish = async () => {
    await cluster?.publish().catch((err: unknown) => log.warn({ err }, "the cluster was not told"));
  };
  const owning = cluster && (await import("@hibernaut/cluster/owning")).openOwning(cluster, log);
  open.defer(() => owning?.leave({ hypervisor, records: () => store.machines.list() }));
  /** Where refused connections are told, once there are machines. */
  const histories: { machines?: Pick<Resources["machines"], "wasRefused"> } = {};
  const network = await startNetwork(settings, {
    ...{ machines: store.machines.list(), alive, dropSnapshots, log },
    groupOf: (app) => groupOf(app, store.apps.get(app)?.network),
    controlPlane: cluster?.controlPlane,
    onRefused(list) {
      for (const { machineId, address: destination, ...what } of list)
        histories.machines?.wasRefused(machineId, { destination, ...what });
    },
  });
  open.defer(() => network.close());
  const authority = openAuthority(settings.dataDir);
  const names = await openNames({
    ...{ gateway: network.gateway, names: network.names, store, settings, authority, vault, log },
    onRefused: (id, refused) => histories.machines?.wasRefused(id, refused),
  });
  open.defer(() => names.close());

  // What machines need from parts that need machines.
  const machines = new Port<Resources["machines"]>("the machines");
  const localApi = new Port<Api>("the API");
  const local: LocalConnections = new WeakMap();
  const checkResults = new CheckResults();
  const proxies = new ConnectedProxies();
  const kept = new KeptCommands();

  // Apps and machines.
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
  const addresses = new AppAddresses(resources.hostnames, settings.proxySuffixes);
  const { manager: certificates, challenges } = await openCertificates({
    settings,
    store: store.certificates,
    namesOf: (app) => addresses.namesOf(app),
    requireRoom: (app) => quotas.requireCertificate(app),
    log,
  });
  open.defer(() => certificates.close());
  const library = new Library({
    images,
    inUse: () => imagesInUse(store),
    keepMs: settings.imageKeepH * 3_600_000,
    onFault: (err) => log.error({ err }, "images that no machine needs could not be collected"),
  });

  const stream = new EventStream(store.outbox);
  open.defer(() => stream.close());
  tellChecks(checkResults, store, {
    onFault: (err) => log.error({ err }, "a change of a check could not be stored for the stream of events"),
  });

  const templates = clustered?.templates;
  const shared =
    cluster && templates && (await openShared({ cluster, store, resources, quotas, images, templates, keyFile, log }));
  if (shared !== undefined) others.fetchImage = shared.fetchImage;
  open.defer(() => shared?.close());
  const {
    recover: recoverBackups,
    start: startBackups,
    close: closeBackups,
    ...kinds
  } = openBackups({
    ...{ settings, store, keyFile, resources, volumes, images, shared: shared?.api.shared, log },
  });
  open.defer(closeBackups);
  const webhooks = openWebhooks({ settings, store, stream, vault, version: VERSION, log });
  open.defer(() => webhooks.close());

  // The API.
  const audit =
    settings.auditMaxMb === 0
      ? undefined
      : new AuditLog({
          folder: join(settings.dataDir, "audit"),
          maxBytes: settings.auditMaxMb * 1024 * 1024,
          onFault: (err) => log.error({ err }, "the audit log could not be flushed to the disk"),
        });
  open.defer(() => audit?.close());
  warmMetrics(registry, resources.warm);
  birthMetrics(registry, resources.births);
  certificateMetrics(registry, certificates);
  webhookMetrics(registry, webhooks);
  backupMetrics(registry, kinds.backupTargets);
  const info = {
    version: VERSION,
    region: settings.region,
    hypervisor: hypervisor.identity(),
    acceleratorReason: verdict.reason,
    guestBundle: bundles.current.version,
    network: { mode: network.network.mode, reason: network.reason },
  };
  platformMetrics(registry, {
    info: { version: VERSION, accelerator, network: info.network.mode, hypervisor_version: info.hypervisor.version },
    dataDir: settings.dataDir,
    machines: () => resources.machines.all().map(({ record }) => record),
    workload: () => resources.workload(),
    memory: () => hostMemory.available(),
    draining: () => resources.drain.active,
    isHealthy: (id) => checkResults.isHealthy(id),
    stream,
    droppedConnections: () => network.dropped(),
  });
  /** Empty until machines are recovered; the API answers before that. */
  const proxied: { coordinator?: RunningCoordinator; sandboxes?: OpenedSandboxes | undefined } = {};
  const api = await buildApi({
    ...resources,
    local,
    images: library,
    uploads,
    volumes,
    ...kinds,
    certificates,
    registries: logins,
    usage: new Usage({ store: store.usage, prices }),
    quotas,
    places: new RequestPlaces(connections),
    tls: apiTlsOf(settings),
    corsOrigins: settings.apiCorsOrigins,
    audit,
    rates: { reads: settings.rateReads, changes: settings.rateChanges, execs: settings.rateExecs },
    tokens: store.tokens,
    sessions: store.sessions,
    dashboard: settings.dashboard === "on" ? BUILT_DASHBOARD : undefined,
    stream,
    webhooks,
    platform: info,
    async *doctor() {
      // Loaded when a client asks: it examines every part.
      const { diagnose } = await import("./doctor.ts");
      yield* diagnose(settings);
    },
    proxy: addresses,
    activity: (id) => proxied.coordinator?.activity(id),
    closedPorts: (app) => proxied.coordinator?.closedPorts(app) ?? [],
    sandboxes: () => proxied.sandboxes?.ofApi,
    tcpPorts: settings.tcpPorts,
    previewTtlS: settings.previewTtlS,
    uploadsPerApp: settings.quotaUploads,
    check: () => store.check(),
    cluster: shared?.api,
    clusterAdmin: cluster?.admin,
    hosts: clustered?.hosts,
    logger: log,
    registry,
  });
  localApi.fill(api);
  open.defer(() => api.close());

  // Nothing ends a sleep behind its owner's back: not an upgrade, and not a setting.
  const unfit = await resources.unfitSnapshots();
  if (unfit.length > 0 && !dropSnapshots) throw droppingRefusal(unfit);
  if (unfit.length > 0) log.warn({ machines: unfit.length }, `dropping snapshots: ${unfitText(unfit)}`);

  // Everything starts: machines are recovered before the API listens, and checked before proxies hear of them.
  await recoverBackups();
  await volumes.recover(await owning?.arrivingVolumes(settings.dataDir));
  await resources.recover();
  resources.dropSnapshots(unfit);
  clustered?.start();
  if (clustered !== undefined) open.defer(expireQuarantine(files, settings.quarantineMs, log));
  shared?.start();
  open.defer(volumes.startExpiry(VOLUME_SNAPSHOTS_EXPIRE_MS));
  open.defer(volumes.scheduler.start());
  open.defer(expirePreviews({ resources, ends: shared?.api.shared.previewEnds, settings, log }));
  open.defer(startBackups());
  open.defer(() => library.close());
  await library.open();
  await bundles.collect(bundlesInUse(store));
  const apiUrl = await listenForApi(api, settings.apiListen, connections);
  cluster?.handle("api", (socket, from) => shared?.accept(api, socket, from));
  await network.opened("apiListen", apiUrl);
  const configFile = join(configFolder(environment), "config.json");
  const admin = ensureAdminToken({ tokens: store.tokens, dataDir: settings.dataDir, configFile, apiUrl });
  shared?.publishToken(admin.token);
  if (admin.note !== undefined) log.warn({}, admin.note);
  log.info({ apiUrl, accelerator, dataDir: settings.dataDir }, `hibernaut serves at ${apiUrl}; ${verdict.reason}`);
  log.info(info.network, `the machines' network is ${info.network.mode}: ${network.reason}`);
  const checks = new CheckRunner(resources.machines, checkResults);
  open.defer(() => checks.close());
  const connectionsSurvive = network.network.mode === "bridge";
  const recorder = new UsageRecorder({
    store: store.usage,
    intervalMs: settings.usageIntervalS * 1000,
    machines: () => resources.machines.all().map(({ record }) => record.id),
    layerBytes: (id) => files.layerBytes(id),
    log,
  });
  open.defer(() => recorder.close());
  // The last platform may have ended before it measured what machines wrote.
  background(recorder.measureLayers(), "measuring what machines wrote");
  const onTraffic = (id: string, traffic: Traffic) => recorder.moved(id, traffic);
  const inside = { connectionsSurvive, gateway: network.gateway, lead: (ways: readonly Way[]) => network.lead(ways) };
  const onTaken = (ports: readonly number[]) =>
    void network
      .proxied(ports)
      .catch((err: unknown) => log.warn({ err }, "clients have no limit at ports that proxies opened"));
  const parts = { resources, checks, proxies, addresses, challenges, ...inside, onTraffic, onTaken };
  const coordinator = await startCoordinator({ ...parts, settings, registry, connections, tracing, cluster, log });
  cluster?.handle("proxy", (socket) => coordinator.acceptHost(socket));
  cluster?.handle("tcp", (socket) => coordinator.acceptTcp(socket));
  proxied.coordinator = coordinator;
  open.defer(() => coordinator.close());
  // An authority asks for proofs at once, so the proxies come first.
  open.defer(
    resources.hostnames.subscribe(() => background(certificates.look(), "looking for certificates that are due")),
  );
  certificates.start();
  webhooks.start();
  open.defer(resources.startTimer());
  open.defer(resources.scrubber.start());
  open.defer(resources.consoles.start());
  const sandboxes = await openSandboxes(settings, {
    ...{ resources, connections, kept, log, volumes, builds: store.builds },
    verify: (text) => verifyToken(store.tokens, text),
    secret: () => readKey(keyFile) ?? makeKey(keyFile),
    vault,
    egressAuthority: () => authority.certificate(),
  });
  proxied.sandboxes = sandboxes;
  const fly = await openFlyPort(settings, { api, tokens: store.tokens, connections, log });
  open.defer(() => fly?.close());
  open.defer(() => sandboxes?.close());
  if (sandboxes !== undefined) await network.opened("sandboxListen", sandboxes.url);
  if (fly !== undefined) await network.opened("flyListen", fly.url);
  const proxyUrl = addresses.url();
  const where = proxyUrl === undefined ? "proxies run in processes of their own" : `apps answer at ${proxyUrl}`;
  log.info({ proxyUrl }, where);
  ready.drain = () => resources.drain.active;
  ready.leaving = () => clustered?.hosts.drain.active ?? false;
  // The others may place machines here from now on, and hear of a drain at once.
  // Those who start the platform may create a machine at once. While the directory is away, nobody can.
  if (cluster?.lease.state === "live") await publish();
  open.defer(resources.drain.subscribe(() => background(publish(), "publishing what this host has")));
  onReady?.({
    apiUrl,
    proxyUrl,
    sandboxUrl: sandboxes?.url,
    flyUrl: fly?.url,
    token: admin.token,
    accelerator: verdict,
  });
  await aborted(signal);
}
