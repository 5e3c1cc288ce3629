/** Health, regions, metrics and the OpenAPI document of the platform. */
import { HibernautError } from "@hibernaut/domain/errors";
import { messageOf } from "@hibernaut/lib/text";
import type { Registry } from "prom-client";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { replies } from "../schemas.ts";
import { Health, Regions } from "./platform.schemas.ts";

/** The check writes to the disk and the route needs no token: a flood of requests must not become a flood of writes. */
const CHECK_INTERVAL_MS = 1000;

/** `GET /v1/health`, without a token, for load balancers and the setup. */
export function healthRoute(
  app: Api,
  {
    platform,
    proxy,
    check,
    drain,
    clusterAdmin,
    hosts,
  }: Pick<ApiDeps, "platform" | "proxy" | "check" | "drain" | "clusterAdmin" | "hosts">,
): void {
  const checkSometimes = atMostEvery(CHECK_INTERVAL_MS, check);
  app.get(
    "/v1/health",
    {
      schema: {
        tags: ["platform"],
        security: [],
        summary: "Show whether the platform works, and what it is",
        response: replies(200, Health),
      },
    },
    async () => {
      try {
        checkSometimes();
      } catch (error) {
        throw new HibernautError(
          "unavailable",
          `The platform cannot write to its database: ${messageOf(error)}.`,
          {},
          { cause: error },
        );
      }
      return {
        status: drain.active ? ("draining" as const) : ("ok" as const),
        version: platform.version,
        region: platform.region,
        hypervisor: platform.hypervisor.hypervisor,
        hypervisor_version: platform.hypervisor.version,
        accelerator: platform.hypervisor.accelerator,
        accelerator_reason: platform.acceleratorReason,
        proxy_url: proxy?.url() ?? null,
        guest_bundle: platform.guestBundle,
        ...(clusterAdmin && { cluster: { ...clusterAdmin.health(), ...disputedIn(hosts) } }),
        network: platform.network,
      };
    },
  );
}

function disputedIn(hosts: ApiDeps["hosts"]): { disputed_machines?: number } {
  const count = hosts?.disputed().length ?? 0;
  return count === 0 ? {} : { disputed_machines: count };
}

/** `GET /openapi.json`, without a token: it says nothing about this platform's machines. */
export function documentRoute(app: Api): void {
  // Kept as it is sent: anyone may ask, and to write out half a megabyte takes longer than all the rest.
  let document: Buffer | undefined;
  app.get("/openapi.json", { schema: { hide: true } }, async (_request, reply) => {
    document ??= Buffer.from(JSON.stringify(app.swagger()));
    return reply.type("application/json; charset=utf-8").send(document);
  });
}

/** `GET /v1/platform/regions`, in Fly's format, with the only region there is: a cluster is one. */
export function regionRoute(app: Api, { platform, cluster }: Pick<ApiDeps, "platform" | "cluster">): void {
  const { region } = platform;
  const hosts = () => cluster && { hosts: cluster.view.hosts().map(({ name }) => name) };
  app.get(
    "/v1/platform/regions",
    routesOf("platform")("List regions", { scope: "read", limited: "shared" }, { reply: Regions }),
    async () => ({ regions: [{ code: region, name: region, ...hosts() }], nearest: region }),
  );
}

/** `GET /metrics`, in the text format of Prometheus. */
export function metricsRoute(app: Api, registry: Registry): void {
  app.get("/metrics", { config: { scope: "read" }, schema: { hide: true } }, async (_request, reply) => {
    return reply.type(registry.contentType).send(await registry.metrics());
  });
}

/** Returns a function that calls `check` at most once per interval, and repeats its outcome in between. */
function atMostEvery(intervalMs: number, check: () => void): () => void {
  let last: { at: number; error?: unknown } | undefined;
  return () => {
    if (last === undefined || Date.now() - last.at >= intervalMs) {
      last = { at: Date.now() };
      try {
        check();
      } catch (error) {
        last.error = error;
      }
    }
    if ("error" in last) throw last.error;
  };
}
