/** The metrics of `GET /metrics`, in a separate registry. */
import type { FastifyReply, FastifyRequest } from "fastify";
import { Gauge, Histogram, Registry } from "prom-client";

/** Buckets in seconds, from a row by its id to a slow database. */
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 5, 30];

interface Metrics {
  registry: Registry;
  observe(request: FastifyRequest, reply: FastifyReply): void;
}

/** Registers the service's metrics. */
export function serviceMetrics(): Metrics {
  const registry = new Registry();
  const requests = new Histogram({
    name: "orders_http_request_duration_seconds",
    help: "Requests, from the head of the request to the end of the reply.",
    labelNames: ["method", "route", "status"],
    buckets: SECONDS,
    registers: [registry],
  });
  new Gauge({
    name: "orders_resident_memory_bytes",
    help: "Memory of the process that is in RAM.",
    registers: [registry],
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
  return {
    registry,
    observe(request, reply) {
      // The route's pattern, because an address for each row would make a series each. Read once, because reading makes it.
      const { url } = request.routeOptions;
      const known = url !== undefined;
      const labels = { method: known ? request.method : "any", route: url ?? "unknown", status: reply.statusCode };
      requests.observe(labels, reply.elapsedTime / 1000);
    },
  };
}
