/** What sandboxes use now. The platform keeps no history of it, so a list has one entry. */

import { guestSize } from "@hibernaut/domain/config";
import type { FastifyInstance } from "fastify";
import { type Static, Type } from "typebox";
import { Refusal } from "../failure.ts";
import { MOST_LISTED } from "../life/limits.ts";
import type { SandboxView } from "../life/view.ts";
import type { ControlDeps } from "./deps.ts";
import { SandboxParams } from "./schemas.ts";

const MetricsQuery = Type.Object({ sandbox_ids: Type.String({ minLength: 1, maxLength: 8192 }) });
const Range = Type.Object({
  start: Type.Optional(Type.Integer({ minimum: 0, description: "Seconds since 1970." })),
  end: Type.Optional(Type.Integer({ minimum: 0 })),
});
const MEGABYTE = 1024 * 1024;

export function metricRoutes(app: FastifyInstance, { needs, sandboxes }: ControlDeps): void {
  const { machines } = needs.resources;
  /** CPU time when it was last asked for, in milliseconds, and when. */
  const seen = new Map<string, { cpuMs: number; at: number }>();

  const metricOf = async ({ record: { app: appName, id, config } }: SandboxView) => {
    const usage = await machines.usage(appName, id);
    const now = Date.now();
    const { cpus, memoryMb } = guestSize(config);
    const before = seen.get(id);
    const share =
      usage === undefined || before === undefined ? 0 : (usage.cpuMs - before.cpuMs) / Math.max(1, now - before.at);
    if (usage === undefined) seen.delete(id);
    else seen.set(id, { cpuMs: usage.cpuMs, at: now });
    if (seen.size > MOST_LISTED * 10) seen.clear();
    return {
      ...{ timestamp: new Date(now).toISOString(), timestampUnix: Math.floor(now / 1000) },
      ...{ cpuCount: Math.max(1, Math.ceil(cpus)), cpuUsedPct: Math.max(0, Math.round(share * 10_000) / 100) },
      ...{ memUsed: usage?.residentBytes ?? 0, memTotal: memoryMb * MEGABYTE, memCache: 0, diskUsed: 0, diskTotal: 0 },
    };
  };

  app.get<{ Params: Static<typeof SandboxParams>; Querystring: Static<typeof Range> }>(
    "/sandboxes/:sandboxID/metrics",
    { schema: { params: SandboxParams, querystring: Range } },
    async ({ sandboxApp, params: { sandboxID }, query: { start = 0, end = Number.POSITIVE_INFINITY } }) => {
      const metric = await metricOf(sandboxes.get(sandboxApp, sandboxID));
      return metric.timestampUnix >= start && metric.timestampUnix <= end ? [metric] : [];
    },
  );
  app.get<{ Querystring: Static<typeof MetricsQuery> }>(
    "/sandboxes/metrics",
    { schema: { querystring: MetricsQuery } },
    async ({ sandboxApp, query: { sandbox_ids: ids } }) => {
      const wanted = new Set(ids.split(","));
      if (wanted.size > MOST_LISTED) throw new Refusal(400, `Ask for at most ${MOST_LISTED} sandboxes at once.`);
      const found = sandboxes.list(sandboxApp).filter(({ record }) => wanted.has(record.id));
      const pairs = await Promise.all(found.map(async (view) => [view.record.id, await metricOf(view)] as const));
      return { sandboxes: Object.fromEntries(pairs) };
    },
  );
}
