/** The host: what machines are made of and run on. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { openConnections } from "@hibernaut/connections";
import { BundleStore } from "@hibernaut/guest/bundles";
import { proveAccelerator } from "@hibernaut/hypervisor/qemu/accelerator";
import { findJail } from "@hibernaut/hypervisor/qemu/jail/find";
import { openQemu } from "@hibernaut/hypervisor/qemu/open";
import { QMP_FAULTS } from "@hibernaut/hypervisor/qemu/qmp";
import type { FetchImage } from "@hibernaut/images";
import { openImages } from "@hibernaut/images/open";
import { HostMemory } from "@hibernaut/machines/admission/host-memory";
import { MachineFiles } from "@hibernaut/machines/files";
import { imagesInUse } from "@hibernaut/machines/in-use";
import type { Prices } from "@hibernaut/metering";
import { openVault } from "@hibernaut/secrets/open";
import type { Settings } from "@hibernaut/settings";
import { openStore } from "@hibernaut/store/open";
import { openTracing, processMetrics } from "@hibernaut/telemetry";
import type { Logger } from "pino";
import { Registry } from "prom-client";
import { operationMetrics } from "./metrics/machines.ts";
import { qmpMetrics } from "./metrics/platform.ts";
import { VERSION } from "./version.ts";

/** What every part is opened with. */
export interface Opening {
  settings: Settings;
  /** The environment that says where the CLI's configuration is. */
  environment: NodeJS.ProcessEnv;
  /** Ends the platform. */
  signal: AbortSignal;
  log: Logger;
  /** What usage costs. Undefined if nobody said that. */
  prices: Prices | undefined;
  /** Closes what was opened, in the reverse order, however the platform ends. */
  open: AsyncDisposableStack;
}

export type Host = Awaited<ReturnType<typeof openHost>>;

/** Opens it. Rejects with a HibernautError if machines could not run here. */
export async function openHost(opening: Opening) {
  const { settings, environment, signal, log, open } = opening;
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
  const hostMemory = new HostMemory();
  return {
    ...opening,
    ...{ files, bundles, registry, connections, tracing, counts, verdict, hypervisor, carryOvers, refusedHypervisor },
    ...{ store, keyFile, sealed, vault, images, logins, uploads, others, hostMemory },
  };
}
