/** `/v1/apps/{app_name}/quota`: what an app may have, and what it has. */
import { QUOTA_NAMES, type QuotaOverrides } from "@hibernaut/domain/quota";
import type { Quotas } from "@hibernaut/machines";
import { type Static, Type } from "typebox";
import type { Api, ApiDeps, Writes } from "../deps.ts";
import { routesOf } from "../route.ts";
import { closed, nullable } from "../schemas.ts";
import { AppParams } from "./apps.schemas.ts";

const route = routesOf("apps");

/** As high as a limit may be: numbers stay exact. */
const MOST = 1_000_000_000;

const WHAT = {
  machines: "Machines.",
  running: "Machines that run at once.",
  cpus: "CPUs of all machines.",
  memory_mb: "Memory of all machines, in MB.",
  volume_gb: "Volumes, in GB.",
  hostnames: "Hostnames.",
  certificates: "Certificates.",
  previews: "Previews.",
};

const amounts = (description: (what: string) => string) =>
  Object.fromEntries(
    QUOTA_NAMES.map((name) => [name, Type.Integer({ minimum: 0, description: description(WHAT[name]) })]),
  ) as Record<(typeof QUOTA_NAMES)[number], ReturnType<typeof Type.Integer>>;

const QuotaReply = Type.Object(
  {
    limits: Type.Object(
      amounts((what) => `${what} 0: no limit.`),
      closed,
    ),
    used: Type.Object(
      amounts((what) => what),
      closed,
    ),
    own: Type.Array(Type.String(), { description: "The limits that are the app's own, and not the platform's." }),
  },
  { ...closed, title: "Quota", description: "What an app may have, and what it has." },
);

const limit = (what: string) =>
  Type.Optional(
    nullable(Type.Integer({ minimum: 0, maximum: MOST }), `${what} 0: no limit. Null: that of the platform.`),
  );

const QuotaBody = Type.Object(
  {
    machines: limit(WHAT.machines),
    running: limit(WHAT.running),
    cpus: limit(WHAT.cpus),
    memory_mb: limit(WHAT.memory_mb),
    volume_gb: limit(WHAT.volume_gb),
    hostnames: limit(WHAT.hostnames),
    certificates: limit(WHAT.certificates),
    previews: limit(WHAT.previews),
  },
  { ...closed, title: "UpdateQuotaRequest", description: "Changes of an app's limits." },
);

/** Registers the routes of quotas. */
export function quotaRoutes(app: Api, { apps, quotas, write }: Pick<ApiDeps, "apps" | "quotas"> & Writes): void {
  const path = "/v1/apps/:app_name/quota";

  app.get(
    path,
    route("Show what an app may have, and what it has", { scope: "read" }, { params: AppParams, reply: QuotaReply }),
    async ({ params }) => quotaWire(quotas, apps.get(params.app_name)),
  );

  // Someone who is held to a quota does not raise it.
  app.put(
    path,
    route(
      "Change what an app may have",
      { scope: "admin", limited: "refused", audited: QUOTA_NAMES },
      { params: AppParams, body: QuotaBody, reply: QuotaReply },
    ),
    async ({ params, body }) => {
      const { app_name: name } = params;
      await write((shared) => shared.quotas.set(name, changed(shared.apps.get(name).quota ?? {}, body)));
      return quotaWire(quotas, apps.get(name));
    },
  );
}

/** What is null goes, what is absent stays. */
function changed(quota: QuotaOverrides, body: Static<typeof QuotaBody>): QuotaOverrides {
  const next: Record<string, number> = { ...quota };
  for (const name of QUOTA_NAMES) {
    const wanted = body[name];
    if (wanted === null) delete next[name];
    else if (wanted !== undefined) next[name] = wanted;
  }
  return next;
}

function quotaWire(quotas: Quotas, { name, quota = {} }: { name: string; quota?: QuotaOverrides }) {
  return { limits: { ...quotas.limitsOf(name) }, used: { ...quotas.usedBy(name) }, own: Object.keys(quota) };
}
