/** The one budget of a process. */
import { mostFiles } from "@hibernaut/lib/open-files";
import type { Registry } from "prom-client";
import { ConnectionBudget } from "./budget.ts";
import { connectionLimits } from "./limits.ts";
import { connectionMetrics } from "./metrics.ts";

/** Makes a budget from the descriptors that this process may have, and its metrics. */
export function openConnections(
  { connectionsPerAddress }: { connectionsPerAddress: number },
  registry: Registry,
): ConnectionBudget {
  const budget = new ConnectionBudget(connectionLimits(mostFiles(), connectionsPerAddress));
  connectionMetrics(registry, budget);
  return budget;
}
