/** Settings of usage: how it is counted, and what it costs. */
import { duration, optionalPath } from "./forms.ts";

export const USAGE_SETTINGS = {
  usageIntervalS: duration("HIBERNAUT_USAGE_INTERVAL", {
    unit: "s",
    default: 60,
    min: 1,
    max: 3600,
    description:
      "How often the [bytes that the proxy moved](usage.md#what-is-counted) are stored. A platform that is killed loses those since the last time; each time writes to the disk.",
  }),
  priceFile: optionalPath("HIBERNAUT_PRICE_FILE", {
    description:
      "The [price file](usage.md#set-prices), from which [usage](usage.md) gets its cost. Read when the platform starts. Without it, usage has no cost.",
  }),
};
