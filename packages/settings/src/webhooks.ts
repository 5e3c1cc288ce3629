/** Settings of webhooks: where they may lead. */
import { choice, duration } from "./forms.ts";

export const WEBHOOK_SETTINGS = {
  webhookPrivateAddresses: choice("HIBERNAUT_WEBHOOK_PRIVATE_ADDRESSES", ["refuse", "allow"], {
    default: "refuse",
    description:
      "Whether [webhooks](webhooks.md#where-webhooks-may-lead) may lead to this host, to private networks and to other addresses that the internet does not reach. The default is `refuse` because anyone who may create a webhook could otherwise send requests to everything that the platform reaches, such as a cloud's metadata service.",
  }),
  webhookHttp: choice("HIBERNAUT_WEBHOOK_HTTP", ["refuse", "allow"], {
    default: "refuse",
    description:
      "Whether webhooks may lead to addresses without TLS. Anyone on the way can read events that are sent there.",
  }),
  webhookTimeoutMs: duration("HIBERNAUT_WEBHOOK_TIMEOUT", {
    default: 15_000,
    min: 1000,
    max: 60_000,
    description:
      "How long a receiver may take to answer, from the lookup of its name to the end of its response. A receiver should answer first and work then.",
  }),
};
