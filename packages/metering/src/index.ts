/** What other packages may use. */
export { usageMetrics } from "./metrics.ts";
export { type Prices, readPrices } from "./prices.ts";
export { MAX_DAYS } from "./range.ts";
export { UsageRecorder } from "./recorder.ts";
export { GROUPINGS } from "./report.ts";
export { type PricedGroup, Usage, type UsageReport } from "./usage.ts";
