/** The API, with all that it tells and does, and the metrics of what was opened. */
import { join } from "node:path";
import {
  AuditLog,
  apiTlsOf,
  backupMetrics,
  buildApi,
  certificateMetrics,
  warmMetrics,
  webhookMetrics,
} from "@hibernaut/api";
import { RequestPlaces } from "@hibernaut/connections";
import { Usage } from "@hibernaut/metering";
import type { RunningCoordinator } from "@hibernaut/proxy";
import { BUILT_DASHBOARD } from "@hibernaut/settings/places";
import { birthMetrics } from "./metrics/births.ts";
import { platformMetrics } from "./metrics/platform.ts";
import type { OpenedSandboxes } from "./sandboxes.ts";
import type { Services } from "./services.ts";
import { VERSION } from "./version.ts";

export type OpenedApi = Awaited<ReturnType<typeof openApi>>;

/** Opens it. It does not listen yet. */
export async function openApi(services: Services) {
  const { settings, log, open, prices, registry, connections, verdict, hypervisor, bundles, store } = services;
  const { logins, uploads, hostMemory, cluster, network, resources, volumes, quotas, clustered } = services;
  const { localApi, local, checkResults, addresses, certificates, library, stream, shared, webhooks, kinds } = services;
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
    info: {
      version: VERSION,
      accelerator: verdict.accelerator,
      network: info.network.mode,
      hypervisor_version: info.hypervisor.version,
    },
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
  return { ...services, api, info, proxied };
}
