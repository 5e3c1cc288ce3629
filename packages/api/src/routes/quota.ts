/** `/v1/apps/{app_name}/quota`: what an app may have, and what it has. */
import { QUOTA_NAMES, type QuotaOverrides } from "@hibernaut/domain/quota";
import type { Quotas } from "@hibernaut/machines";
import { type Static, Type } from "typebox";
import type { Api, ApiDeps, Writes } from "../deps.ts";
import { closed, NoQuery, nullable, replies } from "../schemas.ts";
import { AppParams } from "./apps.schemas.ts";

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
};

const amounts = (description: (what: string) => string) =>
  Object.fromEntries(
    QUOTA_NAMES.map((name) => [name, Type.Integer({ minimum: 0, description: description(WHAT[name]) })]),
  ) as Record<(typeof QUOTA_NAMES)[number], ReturnType<typeof Type.Integer>>;

/** What an app may have and has. */
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

/** Changes some limits of an app. */
const QuotaBody = Type.Object(
  {
    machines: limit(WHAT.machines),
    running: limit(WHAT.running),
    cpus: limit(WHAT.cpus),
    memory_mb: limit(WHAT.memory_mb),
    volume_gb: limit(WHAT.volume_gb),
    hostnames: limit(WHAT.hostnames),
    certificates: limit(WHAT.certificates),
  },
  { ...closed, title: "UpdateQuotaRequest", description: "Changes of an app's limits." },
);

/** Registers the routes of quotas. */
export function quotaRoutes(app: Api, { apps, quotas, write }: Pick<ApiDeps, "apps" | "quotas"> & Writes): void {
  const path = "/v1/apps/:app_name/quota";
  const common = { tags: ["apps"], params: AppParams, querystring: NoQuery, response: replies(200, QuotaReply) };

  app.get(
    path,
    { config: { scope: "read" }, schema: { ...common, summary: "Show what an app may have, and what it has" } },
    async ({ params }) => quotaWire(quotas, apps.get(params.app_name)),
  );

  app.put(
    path,
    {
      // Someone who is held to a quota does not raise it.
      config: {
        scope: "admin",
        limited: "refused",
        audited: QUOTA_NAMES,
      },
      schema: { ...common, summary: "Change what an app may have", body: QuotaBody },
    },
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
