import { ConnectionBudget } from "@hibernaut/connections";

/** A budget that no test uses up, unless it says how small it is to be. */
export function budgetOf(limits: Partial<ConnectionBudget["limits"]> = {}): ConnectionBudget {
  return new ConnectionBudget({ clients: 10_000, machines: 10_000, perAddress: 0, requests: 10_000, ...limits });
}
