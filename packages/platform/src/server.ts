/** The composition root: the only place that knows every part and wires them together. */
import { mkdir, readFile, realpath } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { Logger } from "pino";
import { Registry } from "prom-client";
import { ensureAdminToken } from "./api/admin-token.ts";
import { type Api, buildApi } from "./api/app.ts";
import type { LocalConnections } from "./api/auth.ts";
import { CheckRunner } from "./checks/runner.ts";
import { startDns } from "./dns/start.ts";
import { HibernautError } from "./domain/errors.ts";
import { BundleStore } from "./guest/bundles.ts";
import { proveAccelerator, qemuVersion, type Verdict } from "./hypervisor/qemu/accelerator.ts";
import { QemuHypervisor } from "./hypervisor/qemu/index.ts";
import { Library, openImages } from "./images/index.ts";
import { cannotListen } from "./listening.ts";
import { openLog } from "./log.ts";
import { MachineFiles } from "./machines/files.ts";
import { bundlesInUse, imagesInUse } from "./machines/in-use.ts";
import { openMachines, type Resources } from "./machines/open.ts";
import { Slots } from "./machines/slots.ts";
import type { MachineRecord } from "./domain/machine.ts";
import type { KnownMachine } from "./network/contract.ts";
import { openNetwork } from "./network/open.ts";
import { type ProxySide, startProxySide } from "./proxy/start.ts";
import { openSecrets } from "./secrets/index.ts";
import { configFolder, LONGEST_SOCKET, MAX_SOCKET_PATH, type Settings } from "./settings.ts";
import { SnapshotStore } from "./snapshots/store.ts";
import { lockDataDir } from "./store/lock.ts";
import { openStore } from "./store/store.ts";
import { unknownSettings } from "./unknown-settings.ts";
import { VolumeFiles } from "./volumes/files.ts";
import { Volumes } from "./volumes/index.ts";

/** Retention is counted in days. */
const VOLUME_SNAPSHOTS_EXPIRE_MS = 60 * 60_000;

export interface PlatformReady {
  apiUrl: string;
  /** Where apps answer; undefined when proxies run in processes of their own. */
  proxyUrl: string | undefined;
  token: string;
  accelerator: Verdict;
}

export interface ServeOptions {
  settings: Settings;
  /** Ends the platform; guests that run go on and are adopted by the next one. */
  signal: AbortSignal;
  /** Where the command line's configuration is; the process's own environment when absent. */
  environment?: NodeJS.ProcessEnv;
  onReady?(ready: PlatformReady): void;
}

/** Runs the platform until the signal is aborted. Rejects with a HibernautError when it cannot start. */
export async function serve(options: ServeOptions): Promise<void> {
  await mkdir(options.settings.dataDir, { recursive: true, mode: 0o700 });
  // By one name only: running guests are found by the paths in their command lines.
  const settings = { ...options.settings, dataDir: await realpath(options.settings.dataDir) };
  if (Buffer.byteLength(settings.dataDir + LONGEST_SOCKET) > MAX_SOCKET_PATH) {
    const most = MAX_SOCKET_PATH - LONGEST_SOCKET.length;
    throw new HibernautError(
      "invalid_argument",
      `The path ${settings.dataDir} is too long for sockets: HIBERNAUT_DATA_DIR may have ${most} bytes.`,
    );
  }
  const log = openLog(settings.logLevel, settings.logFormat);
  const lock = lockDataDir(settings.dataDir);
  // Waiting for guests uses timers that keep no process alive; this one does, until we are done.
  const alive = setInterval(() => {}, 2 ** 30);
  try {
    await runLocked({ ...options, settings }, log);
  } finally {
    clearInterval(alive);
    lock.release();
  }
}

async function runLocked(
  { settings, signal, environment = process.env, onReady }: ServeOptions,
  log: Logger,
): Promise<void> {
  for (const note of unknownSettings(environment)) log.warn({}, note);
  const files = new MachineFiles(settings.dataDir, settings.layerSizeMb);
  await Promise.all([
    mkdir(files.machineRoot, { recursive: true, mode: 0o700 }),
    mkdir(files.runRoot, { recursive: true, mode: 0o700 }),
  ]);
  const bundles = await BundleStore.open(settings.dataDir, settings.guestBundle);
  const version = await qemuVersion(settings.qemu);
  const verdict = await proveAccelerator(settings, bundles.current, signal);
  const { accelerator } = verdict;
  const { machineRoot, runRoot } = files;
  const hypervisor = new QemuHypervisor({ program: settings.qemu, version, accelerator, runRoot, machineRoot });
  const store = openStore(join(settings.dataDir, "hibernaut.db"));
  const { images, logins } = await openImages(settings);
  const snapshots = new SnapshotStore((id) => files.paths(id).folder);
  const network = await openNetwork(settings.network, {
    dataDir: settings.dataDir,
    subnet: settings.networkSubnet,
    machines: store.machines.list().map(knownMachine),
    controlPorts: controlPorts(settings, settings.apiListen.port),
    onTrouble: (message) => log.warn({}, message),
  });
  for (const note of network.notes) log.warn({}, note);
  const dns = await startDns(network.gateway, store, log);
  // A boot under emulation keeps one CPU busy.
  const bootSlots = new Slots(Math.max(2, availableParallelism()));
  const local: LocalConnections = new WeakMap();
  const checks = new CheckRunner();
  let proxySide: ProxySide | undefined;
  let stopExpiry = () => {};
  const volumes = new Volumes({
    store,
    files: new VolumeFiles(settings.dataDir),
    holdStill: (machineId, work) => resources.machines.holdStill(machineId, work),
    onTrouble: (message) => log.warn({}, message),
  });
  const resources: Resources = openMachines({
    hypervisor,
    store,
    images,
    network: network.network,
    snapshots,
    bundles,
    secrets: openSecrets({ store: store.secrets, keyFile: join(settings.dataDir, "secrets.key") }),
    volumes,
    files,
    bootSlots,
    settings,
    log,
    checkResults: (id) => checks.results(id),
    finishRequests: async (id) => proxySide?.finishRequests(id),
    // Spoken to like any other connection, but for who is asking.
    onLocalConnection: (machineId, connection) => {
      local.set(connection, machineId);
      api.server.emit("connection", connection);
    },
  });
  const library = new Library({
    images,
    inUse: () => imagesInUse(store.machines),
    keepMs: settings.imageKeepH * 3_600_000,
    onFault: (err) => log.error({ err }, "images that no machine needs could not be collected"),
  });
  const registry = new Registry();
  const info = {
    version: await productVersion(),
    region: settings.region,
    hypervisor: hypervisor.identity(),
    acceleratorReason: verdict.reason,
    guestBundle: bundles.current.version,
    network: { mode: network.network.mode, reason: network.reason },
  };
  const api: Api = await buildApi({
    ...resources,
    local,
    images: library,
    volumes,
    registries: logins,
    tokens: store.tokens,
    platform: info,
    proxy: { url: () => proxySide?.url, urlsOf: (app) => proxySide?.urlsOf(app) ?? [] },
    check: () => store.check(),
    logger: log,
    registry,
  });
  try {
    await volumes.recover();
    await resources.recover();
    stopExpiry = volumes.startExpiry(VOLUME_SNAPSHOTS_EXPIRE_MS);
    await library.open();
    await bundles.collect(bundlesInUse(store.machines));
    const apiUrl = await listen(api, settings);
    if (settings.apiListen.port === 0) await network.protect(controlPorts(settings, Number(new URL(apiUrl).port)));
    const configFile = join(configFolder(environment), "config.json");
    const admin = ensureAdminToken({ tokens: store.tokens, dataDir: settings.dataDir, configFile, apiUrl });
    if (admin.note !== undefined) log.warn({}, admin.note);
    log.info({ apiUrl, accelerator, dataDir: settings.dataDir }, `hibernaut serves at ${apiUrl}; ${verdict.reason}`);
    log.info(info.network, `the machines' network is ${info.network.mode}: ${network.reason}`);
    checks.start(resources.machines);
    const connectionsSurvive = network.network.mode === "bridge";
    proxySide = await startProxySide({ resources, settings, registry, log, checks, connectionsSurvive });
    const { url: proxyUrl } = proxySide;
    log.info(
      { proxyUrl },
      proxyUrl === undefined ? "proxies run in processes of their own" : `apps answer at ${proxyUrl}`,
    );
    onReady?.({ apiUrl, proxyUrl, token: admin.token, accelerator: verdict });
    await aborted(signal);
  } finally {
    library.close();
    stopExpiry();
    await proxySide?.close();
    await checks.close();
    await api.close();
    await resources.close();
    await dns.close();
    await network.close();
    store.close();
  }
}

async function listen(api: Api, { apiListen }: Settings): Promise<string> {
  try {
    await api.listen(apiListen);
  } catch (error) {
    throw await cannotListen("The API", apiListen, "HIBERNAUT_API_LISTEN", error);
  }
  const { address, family, port } = api.server.address() as AddressInfo;
  return `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}

/** What the network asks of a machine, and whether it has memory to lose. */
function knownMachine({ id, app, address, state, snapshot }: MachineRecord): KnownMachine {
  const empty = state === "created" || state === "stopped" || state === "failed" || state === "destroying";
  const memory = snapshot !== null ? "asleep" : empty ? undefined : "awake";
  return { id, app, address, ...(memory && { memory }) };
}

/** Ports at which the platform itself is controlled or watched: nothing for the apps in its machines. */
function controlPorts({ proxyMetricsListen }: Settings, apiPort: number): number[] {
  return [apiPort, proxyMetricsListen?.port ?? 0].filter((port) => port !== 0);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

async function productVersion(): Promise<string> {
  const text = await readFile(join(import.meta.dirname, "../package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
