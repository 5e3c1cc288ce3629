/** Turns traces on if the settings say so. What sends them is loaded only then. */
import type { Settings } from "@hibernaut/settings";
import { Counter, type Registry } from "prom-client";
import type { Tracing } from "./contract.ts";
import { tracesEndpoint } from "./endpoint.ts";

const OUTCOMES = ["sent", "dropped", "failed"] as const;

interface OpenOptions {
  /** Of Hibernaut: the receiver is told. */
  version: string;
  settings: Pick<Settings, "tracesEndpoint" | "tracesSample" | "region">;
  environment: NodeJS.ProcessEnv;
  registry: Registry;
  log: Record<"info" | "warn", (fields: object, message: string) => void>;
}

/** Returns the tracer. Undefined when traces are off. */
export async function openTracing(options: OpenOptions): Promise<Tracing | undefined> {
  const { settings, environment, registry, log } = options;
  const { url, unusable } = tracesEndpoint(settings, environment);
  if (unusable !== undefined)
    log.warn({}, `there are no traces: ${unusable} must be an http or https address such as http://127.0.0.1:4318`);
  if (url === undefined) return undefined;
  const { startTracing } = await import("./otlp.ts");
  const spans = new Counter({
    name: "hibernaut_trace_spans_total",
    help: "Spans by outcome: sent, dropped because too many waited, or failed because the collector did not take them.",
    labelNames: ["outcome"],
    registers: [registry],
  });
  for (const outcome of OUTCOMES) spans.inc({ outcome }, 0);
  const ratio = Number(settings.tracesSample);
  log.info({ url: withoutLogin(url), ratio }, "traces are on");
  return startTracing({
    ...{ url, ratio },
    resource: { "service.name": "hibernaut", "service.version": options.version, "hibernaut.region": settings.region },
    count: (outcome, count) => spans.inc({ outcome }, count),
  });
}

/** An address may have a password in it. */
function withoutLogin(url: string): string {
  const shown = new URL(url);
  shown.username = shown.password = "";
  return shown.href;
}
