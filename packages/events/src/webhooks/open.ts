/** Puts the parts together that deliver events to webhooks. */
import { networkList } from "@hibernaut/lib/public-addresses";
import type { Vault } from "@hibernaut/secrets";
import type { Settings } from "@hibernaut/settings";
import type { Store } from "@hibernaut/store";
import type { EventStream } from "../stream.ts";
import { type Clock, HOST_CLOCK } from "./clock.ts";
import type { DeliveryParts } from "./parts.ts";
import { type SendOptions, sender } from "./send.ts";
import { Webhooks } from "./webhooks.ts";

/** Deliveries that may wait in the queue of a webhook: what a receiver that restarts misses, and a few MB. */
const MAX_WAITING = 1_000;

interface OpenWebhooksOptions {
  settings: Pick<Settings, "blockedNetworks" | "webhookPrivateAddresses" | "webhookHttp" | "webhookTimeoutMs">;
  store: Pick<Store, "webhooks" | "deliveries">;
  stream: EventStream;
  vault: Vault;
  version: string;
  log: DeliveryParts["log"];
  /** For tests: the clock, and whom and what names to trust. */
  clock?: Clock;
  sending?: Pick<SendOptions, "ca" | "lookup">;
  /** For tests: the length of queues. */
  maxWaiting?: number;
}

/** Returns the webhooks of a platform. They deliver nothing before `start`. */
export function openWebhooks(options: OpenWebhooksOptions): Webhooks {
  const { settings, store, stream, vault, version, log, clock = HOST_CLOCK, sending } = options;
  const { maxWaiting = MAX_WAITING } = options;
  const policy = {
    privateAddresses: settings.webhookPrivateAddresses === "allow",
    http: settings.webhookHttp === "allow",
    blocked: networkList(settings.blockedNetworks),
  };
  const userAgent = `Hibernaut/${version}`;
  const send = sender({ policy, timeoutMs: settings.webhookTimeoutMs, userAgent, ...sending });
  const { webhooks, deliveries } = store;
  return new Webhooks({
    webhooks,
    deliveries,
    stream,
    vault,
    policy,
    send,
    clock,
    log,
    maxWaiting,
    random: Math.random,
  });
}
