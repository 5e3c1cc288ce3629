/**
 * What a host that is a member of a cluster has besides: its place there, the machines that are its own, and what its API
 * shares. A host alone loads none of it.
 */
import { totalmem } from "node:os";
import { join } from "node:path";
import type { OpenedShared, OpenSharedOptions } from "@hibernaut/api/cluster/open";
import { CLUSTER_FOLDER } from "@hibernaut/cluster/keys";
import type { HostFacts, OpenClusterOptions, OpenedCluster } from "@hibernaut/cluster/open";
import { isThere } from "@hibernaut/lib/absence";
import type { HostMemory } from "@hibernaut/machines/admission/host-memory";
import type { MachineFiles } from "@hibernaut/machines/files";
import { makeKey, readKey } from "@hibernaut/secrets/key";
import { openSecrets } from "@hibernaut/secrets/open";
import type { Logger } from "pino";
import type { Host } from "./host.ts";
import { VERSION } from "./version.ts";

export type Membership = Awaited<ReturnType<typeof openMembership>>;

/** Opens the place of this host in its cluster, and what it owns there. On a host alone there is neither, and nothing is published. */
export async function openMembership(host: Host) {
  const { settings, log, open, hypervisor, bundles, store, keyFile, hostMemory } = host;
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
  return { ...host, ready, cluster, publish, owning };
}

/** Joins the cluster that this host is a member of. Undefined, and nothing of clusters is loaded, on a host alone. */
async function openPlace(options: OpenClusterOptions): Promise<OpenedCluster | undefined> {
  if (!(await isThere(join(options.dataDir, CLUSTER_FOLDER)))) return undefined;
  const { openCluster } = await import("@hibernaut/cluster/open");
  return openCluster(options);
}

/** What the API of a host in a cluster shares with the others, and asks of them. */
export async function openShared(
  options: Omit<OpenSharedOptions, "openSecrets"> & { keyFile: string },
): Promise<OpenedShared> {
  const { keyFile } = options;
  const { openApiCluster } = await import("@hibernaut/api/cluster/open");
  return openApiCluster({ ...options, openSecrets: (store) => openSecrets({ store, keyFile }) });
}

/** What is told to all hosts at each change is told in steps of this size, in MB. */
const MEMORY_STEP_MB = 256;

/** This host's memory, as the others are told. */
export function memoryOf(host: HostMemory): HostFacts["memoryMb"] {
  const inSteps = (bytes: number) => Math.floor(bytes / 1024 / 1024 / MEMORY_STEP_MB) * MEMORY_STEP_MB;
  return { total: Math.floor(totalmem() / 1024 / 1024), free: inSteps(host.available() ?? 0) };
}

/** An identity as the hosts of a cluster tell it to each other. */
export function textOf(identity: object): Record<string, string> {
  const known = Object.entries(identity).filter(([, value]) => value !== undefined);
  return Object.fromEntries(known.map(([name, value]) => [name, String(value)]));
}

/** How often files in quarantine are looked at. They are kept for a day, unless a setting says otherwise. */
const QUARANTINE_LOOK_MS = 10 * 60_000;

/** Deletes what has been in quarantine for long enough, now and then. Returns a function that ends that. */
export function expireQuarantine(files: MachineFiles, keepMs: number, log: Logger): () => void {
  const look = () =>
    void files.expireQuarantine(keepMs).catch((err: unknown) => log.warn({ err }, "the quarantine was not cleaned up"));
  look();
  const timer = setInterval(look, QUARANTINE_LOOK_MS).unref();
  return () => clearInterval(timer);
}
