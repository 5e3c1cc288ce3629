/** What `GET /metrics` counts, in a registry of its own. */
import { STATES } from "@hibernaut/domain/machine";
import type { Machines } from "@hibernaut/machines";
import type { FastifyReply, FastifyRequest } from "fastify";
import { Gauge, Histogram, Registry } from "prom-client";

/** Buckets from a cached read to a wait of five minutes, the longest request. */
const SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30, 300];

/** The registry, and the hook that counts a finished request. */
export interface Metrics {
  registry: Registry;
  observe(request: FastifyRequest, reply: FastifyReply): void;
}

/** Registers the API's metrics. */
export function apiMetrics(machines: Pick<Machines, "all">, registry = new Registry()): Metrics {
  new Gauge({
    name: "hibernaut_machines",
    help: "Machines by state.",
    labelNames: ["state"],
    registers: [registry],
    collect() {
      const counts = countStates(machines);
      for (const state of STATES) if (state !== "destroyed") this.set({ state }, counts.get(state) ?? 0);
    },
  });
  const requests = new Histogram({
    name: "hibernaut_http_request_duration_seconds",
    help: "Requests to the API, from the head of the request to the end of the reply.",
    labelNames: ["method", "route", "status"],
    buckets: SECONDS,
    registers: [registry],
  });
  return {
    registry,
    observe(request, reply) {
      // The pattern, not the path: one path per machine would mean one series per machine.
      const route = request.routeOptions.url ?? "unknown";
      const method = request.routeOptions.url === undefined ? "any" : request.method;
      requests.observe({ method, route, status: reply.statusCode }, reply.elapsedTime / 1000);
    },
  };
}

function countStates(machines: Pick<Machines, "all">): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { record } of machines.all()) counts.set(record.state, (counts.get(record.state) ?? 0) + 1);
  return counts;
}
