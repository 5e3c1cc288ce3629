/** `/v1/timeline` and `/v1/wakes`: what machines did over time. */
import { reachesApp } from "@hibernaut/domain/scopes";
import type { WakeSummary } from "@hibernaut/domain/timeline";
import type { HourOfWakes, Timeline } from "@hibernaut/machines";
import type { FastifyRequest } from "fastify";
import { requireReach } from "../access.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import {
  TimelineQuery,
  TimelineReply,
  type TimelineWire,
  USUAL_HOURS,
  WakesReply,
  type WakesWire,
} from "./timeline.schemas.ts";

const route = routesOf("platform");

/** Registers the routes. */
export function timelineRoutes(app: Api, deps: Pick<ApiDeps, "timelines" | "apps" | "cluster">): void {
  const { timelines, apps, cluster } = deps;
  const config = { scope: "read", limited: "filtered" } as const;

  app.get(
    "/v1/timeline",
    route("Show what machines did over time", config, { querystring: TimelineQuery, reply: TimelineReply }),
    async (request): Promise<TimelineWire> => {
      const { hours = USUAL_HOURS, app: name } = request.query;
      const { from, until, machines } = await timelines.read(wantedBy(request, name), hours);
      return { from: iso(from), until: iso(until), machines: machines.map(timelineWire) };
    },
  );

  app.get(
    "/v1/wakes",
    route("Show how machines woke, hour by hour, with latencies by kind", config, {
      querystring: TimelineQuery,
      reply: WakesReply,
    }),
    async (request): Promise<WakesWire> => {
      const { hours: wanted = USUAL_HOURS, app: name } = request.query;
      const { from, until, hours } = await timelines.wakes(wantedBy(request, name), wanted);
      return { from: iso(from), until: iso(until), hours: hours.map(cluster === undefined ? hourWire : hourPart) };
    },
  );

  /** Whose machines are shown. Throws `not_found` for an app that does not exist for the token. */
  function wantedBy({ token }: FastifyRequest, name: string | undefined): (app: string) => boolean {
    if (name === undefined) return (each) => token === null || reachesApp(token, each);
    requireReach(token, name);
    apps.get(name);
    return (each) => each === name;
  }
}

function timelineWire({ machine, spans, wakes, wakesLeftOut }: Timeline): TimelineWire["machines"][number] {
  return {
    app_name: machine.app,
    machine_id: machine.id,
    name: machine.name,
    state: machine.state,
    spans: spans.map(({ state, from, until }) => ({ state, from: iso(from), until: iso(until) })),
    wakes: wakes.map(({ at, kind, reason, durationMs }) => ({ at: iso(at), kind, reason, duration_ms: durationMs })),
    wakes_left_out: wakesLeftOut,
  };
}

/** What a host of a cluster answers, before it is put together: percentiles cannot be. */
export type HourPart = WakesWire["hours"][number] & Pick<HourOfWakes, "durationsMs">;

function hourPart(hour: HourOfWakes): HourPart {
  return { ...hourWire(hour), durationsMs: hour.durationsMs };
}

/** An hour on the wire. */
export function hourWire({
  from,
  kinds: { warm, resume, cold },
}: Pick<HourOfWakes, "from" | "kinds">): WakesWire["hours"][number] {
  return {
    from: iso(from),
    kinds: {
      ...(warm && { warm: summaryWire(warm) }),
      ...(resume && { resume: summaryWire(resume) }),
      ...(cold && { cold: summaryWire(cold) }),
    },
  };
}

function summaryWire({ count, p50Ms, p99Ms }: WakeSummary) {
  return { count, p50_ms: p50Ms, p99_ms: p99Ms };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
