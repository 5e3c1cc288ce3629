/** `/v1/usage`: what apps and machines used, and what sleeping saved. */
import type { PricedGroup, UsageReport } from "@hibernaut/metering";
import type { Static } from "typebox";
import { requireReach } from "../access.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { dayMs } from "../since.ts";
import { MachineParams } from "./machines.schemas.ts";
import { MachineUsageQuery, UsageQuery, UsageReportReply } from "./usage.schemas.ts";

const route = routesOf("usage");

type ReportWire = Static<typeof UsageReportReply>;

const MS_PER_S = 1000;
const MB_MS_PER_GB_S = 1024 * MS_PER_S;

/** Registers the routes of usage. */
export function usageRoutes(app: Api, { usage, machines }: Pick<ApiDeps, "usage" | "machines">): void {
  app.get(
    "/v1/usage",
    route(
      "Show what apps used, by app, machine or day",
      { scope: "read", limited: "filtered" },
      { querystring: UsageQuery, reply: UsageReportReply },
    ),
    async ({ query, token }) => {
      if (query.app !== undefined) requireReach(token, query.app);
      const apps = token?.apps ?? undefined;
      return reportWire(usage.report({ ...momentsOf(query), groupBy: query.group_by, app: query.app, apps }));
    },
  );

  app.get(
    "/v1/apps/:app_name/machines/:machine_id/usage",
    route(
      "Show what a machine used, by day; a destroyed one too, by its whole id",
      { scope: "read" },
      { params: MachineParams, querystring: MachineUsageQuery, reply: UsageReportReply },
    ),
    async ({ params: { app_name: name, machine_id: word }, query }) => {
      // Usage outlives the machine and its app, which the other resources no longer know then.
      const id = usage.knowsMachine(name, word) ? word : machines.get(name, word).record.id;
      return reportWire(usage.ofMachine(name, id, momentsOf(query)));
    },
  );
}

function momentsOf({ from, to }: Static<typeof MachineUsageQuery>): { from?: number; to?: number } {
  const now = Date.now();
  return {
    ...(from !== undefined && { from: dayMs(from, "from", now) }),
    ...(to !== undefined && { to: dayMs(to, "to", now) }),
  };
}

function reportWire({ since, until, groupBy, currency, rows, total }: UsageReport): ReportWire {
  return {
    from: new Date(since).toISOString(),
    to: new Date(until).toISOString(),
    group_by: groupBy,
    currency,
    usage: rows.map(usageWire),
    total: usageWire(total),
  };
}

function usageWire({ app, machine, day, amounts, cost }: PricedGroup): ReportWire["total"] {
  return {
    app_name: app,
    machine_id: machine?.id ?? null,
    machine_name: machine?.name ?? null,
    day,
    running_seconds: amounts.running_ms / MS_PER_S,
    suspended_seconds: amounts.suspended_ms / MS_PER_S,
    stopped_seconds: amounts.stopped_ms / MS_PER_S,
    cpu_seconds: amounts.cpu_ms / MS_PER_S,
    memory_gb_seconds: amounts.memory_mb_ms / MB_MS_PER_GB_S,
    layer_gb_seconds: amounts.layer_mb_ms / MB_MS_PER_GB_S,
    volume_gb_seconds: amounts.volume_mb_ms / MB_MS_PER_GB_S,
    snapshot_gb_seconds: amounts.snapshot_mb_ms / MB_MS_PER_GB_S,
    wakes: { resume: amounts.resumes, cold: amounts.cold_starts },
    proxied_bytes: { in: amounts.bytes_in, out: amounts.bytes_out },
    cost: cost && {
      cpu: cost.cpu,
      memory: cost.memory,
      storage: cost.storage,
      total: cost.total,
      if_always_running: cost.ifAlwaysRunning,
      saved_by_sleeping: cost.savedBySleeping,
    },
  };
}
