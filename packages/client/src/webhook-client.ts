/** Methods about webhooks. */

import type { LimitOptions, RotateWebhookOptions } from "./options.ts";
import { OverviewClient } from "./overview-client.ts";
import type { CallOptions } from "./transport.ts";
import type {
  CreateWebhookRequest,
  NewWebhook,
  UpdateWebhookRequest,
  Webhook,
  WebhookDelivery,
  WebhookTest,
} from "./types.ts";

/** The part of the client about webhooks. See {@link OverviewClient}. */
export abstract class WebhookClient extends OverviewClient {
  /** Returns the webhooks that the token reaches, oldest first. */
  async listWebhooks(options?: CallOptions): Promise<Webhook[]> {
    return (await this.call("get", "/v1/webhooks", { ...options })).webhooks;
  }

  /** Creates a webhook. Its secret is in the reply, and nowhere else ever after. */
  createWebhook(body: CreateWebhookRequest, options?: CallOptions): Promise<NewWebhook> {
    return this.call("post", "/v1/webhooks", { body, ...options });
  }

  /** Returns a webhook. */
  getWebhook(id: string, options?: CallOptions): Promise<Webhook> {
    return this.call("get", "/v1/webhooks/{webhook_id}", { params: { webhook_id: id }, ...options });
  }

  /** Changes a webhook, disables it, or enables it again. */
  updateWebhook(id: string, body: UpdateWebhookRequest, options?: CallOptions): Promise<Webhook> {
    return this.call("patch", "/v1/webhooks/{webhook_id}", { params: { webhook_id: id }, body, ...options });
  }

  /** Removes a webhook with what waits for it. */
  async removeWebhook(id: string, options?: CallOptions): Promise<void> {
    await this.call("delete", "/v1/webhooks/{webhook_id}", { params: { webhook_id: id }, ...options });
  }

  /** Sends a test message once. Resolves also when it does not arrive: `outcome` says what came of it. */
  testWebhook(id: string, options?: CallOptions): Promise<WebhookTest> {
    return this.call("post", "/v1/webhooks/{webhook_id}/test", { params: { webhook_id: id }, ...options });
  }

  /** Creates a new secret. The old one signs, too, for a while. */
  rotateWebhook(id: string, { overlap, ...options }: RotateWebhookOptions = {}): Promise<NewWebhook> {
    const request = { params: { webhook_id: id }, body: { overlap }, ...options };
    return this.call("post", "/v1/webhooks/{webhook_id}/rotate", request);
  }

  /** Returns what is on its way to a webhook, and what arrived lately, newest first. Default limit: 50. */
  async listWebhookDeliveries(id: string, { limit, ...options }: LimitOptions = {}): Promise<WebhookDelivery[]> {
    const request = { params: { webhook_id: id }, query: { limit }, ...options };
    return (await this.call("get", "/v1/webhooks/{webhook_id}/deliveries", request)).deliveries;
  }
}
