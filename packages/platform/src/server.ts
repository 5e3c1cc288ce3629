/** The composition root: the only place that knows every part. It constructs and connects them, and starts them in order. */
import { join } from "node:path";
import { ensureAdminToken, listenForApi } from "@hibernaut/api";
import type { AcceleratorChoice } from "@hibernaut/hypervisor/qemu/accelerator";
import { aborted } from "@hibernaut/lib/async";
import { background } from "@hibernaut/lib/background";
import { bundlesInUse } from "@hibernaut/machines/in-use";
import { droppingRefusal, unfitText } from "@hibernaut/machines/unfit-snapshots";
import { readPrices } from "@hibernaut/metering";
import { configFolder, type Settings } from "@hibernaut/settings";
import { unknownSettings } from "@hibernaut/settings/unknown-settings";
import { openDataDir } from "@hibernaut/store/data-dir";
import { installLastResort, openLog } from "@hibernaut/telemetry";
import type { Logger } from "pino";
import { type Doors, openDoors } from "./doors.ts";
import { openHost } from "./host.ts";
import { openAllMachines } from "./machines.ts";
import { expireQuarantine, openMembership } from "./member.ts";
import { openApi } from "./open-api.ts";
import { expirePreviews } from "./previews.ts";
import { openReach } from "./reach.ts";
import { openServices } from "./services.ts";

/** How often expired volume snapshots are deleted. Their retention is counted in days. */
const VOLUME_SNAPSHOTS_EXPIRE_MS = 60 * 60_000;

interface PlatformReady extends Doors {
  apiUrl: string;
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

  const host = await openHost({ settings, environment, signal, log, prices, open });
  const alive = new Set((await host.hypervisor.find()).map(({ machineId }) => machineId));
  const membership = await openMembership(host);
  const reach = await openReach(membership, { alive, dropSnapshots });
  const machines = await openAllMachines(reach);
  const services = await openServices(machines);
  const opened = await openApi(services);
  const { api, info, resources, volumes, clustered, shared, cluster, network } = opened;

  // Nothing ends a sleep behind its owner's back: not an upgrade, and not a setting.
  const unfit = await resources.unfitSnapshots();
  if (unfit.length > 0 && !dropSnapshots) throw droppingRefusal(unfit);
  if (unfit.length > 0) log.warn({ machines: unfit.length }, `dropping snapshots: ${unfitText(unfit)}`);

  // Everything starts: machines are recovered before the API listens, and checked before proxies hear of them.
  await opened.recoverBackups();
  await volumes.recover(await membership.owning?.arrivingVolumes(settings.dataDir));
  await resources.recover();
  resources.dropSnapshots(unfit);
  clustered?.start();
  if (clustered !== undefined) open.defer(expireQuarantine(host.files, settings.quarantineMs, log));
  shared?.start();
  open.defer(volumes.startExpiry(VOLUME_SNAPSHOTS_EXPIRE_MS));
  open.defer(volumes.scheduler.start());
  open.defer(expirePreviews({ resources, ends: shared?.api.shared.previewEnds, settings, log }));
  open.defer(opened.startBackups());
  open.defer(() => opened.library.close());
  await opened.library.open();
  await host.bundles.collect(bundlesInUse(host.store));
  const apiUrl = await listenForApi(api, settings.apiListen, host.connections);
  cluster?.handle("api", (socket, from) => shared?.accept(api, socket, from));
  await network.opened("apiListen", apiUrl);
  const configFile = join(configFolder(environment), "config.json");
  const admin = ensureAdminToken({ tokens: host.store.tokens, dataDir: settings.dataDir, configFile, apiUrl });
  shared?.publishToken(admin.token);
  if (admin.note !== undefined) log.warn({}, admin.note);
  log.info(
    { apiUrl, accelerator: host.verdict.accelerator, dataDir: settings.dataDir },
    `hibernaut serves at ${apiUrl}; ${host.verdict.reason}`,
  );
  log.info(info.network, `the machines' network is ${info.network.mode}: ${network.reason}`);
  const doors = await openDoors(opened);
  membership.ready.drain = () => resources.drain.active;
  membership.ready.leaving = () => clustered?.hosts.drain.active ?? false;
  // The others may place machines here from now on, and hear of a drain at once.
  // Those who start the platform may create a machine at once. While the directory is away, nobody can.
  if (cluster?.lease.state === "live") await membership.publish();
  open.defer(resources.drain.subscribe(() => background(membership.publish(), "publishing what this host has")));
  onReady?.({
    apiUrl,
    ...doors,
    token: admin.token,
    accelerator: host.verdict,
  });
  await aborted(signal);
}
