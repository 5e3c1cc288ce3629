/** What other packages may use. */
export { readGauge } from "./gauge.ts";
export { installLastResort } from "./last-resort.ts";
export { lineWriter, openLog } from "./log.ts";
export { processMetrics } from "./process-metrics.ts";
export type { RequestTrace, Tracing, WakeTraces } from "./tracing/contract.ts";
export { openTracing } from "./tracing/open.ts";
