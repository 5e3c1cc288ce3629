/** What the metrics say about webhooks. Their labels are bounded: none names a webhook. */
import type { Webhooks } from "@hibernaut/events";
import { Counter, Gauge, type Registry } from "prom-client";

/** Registers them. */
export function webhookMetrics(registry: Registry, webhooks: Pick<Webhooks, "list" | "counts">): void {
  const registers = [registry];
  new Gauge({
    name: "hibernaut_webhooks",
    help: "Webhooks by state.",
    labelNames: ["state"],
    registers,
    collect() {
      const all = webhooks.list();
      const disabled = all.filter((each) => each.disabled !== null).length;
      this.set({ state: "enabled" }, all.length - disabled);
      this.set({ state: "disabled" }, disabled);
    },
  });
  new Gauge({
    name: "hibernaut_webhook_deliveries_waiting",
    help: "Deliveries to enabled webhooks that were taken from the stream of events and have not arrived.",
    registers,
    collect() {
      this.set(webhooks.counts.waiting);
    },
  });
  new Counter({
    name: "hibernaut_webhook_attempts_total",
    help: "Attempts to deliver an event to a webhook, by outcome.",
    labelNames: ["outcome"],
    registers,
    collect() {
      this.reset();
      for (const [outcome, count] of Object.entries(webhooks.counts.attempts)) this.inc({ outcome }, count);
    },
  });
}
