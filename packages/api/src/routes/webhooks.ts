/** `/v1/webhooks` */
import { HibernautError } from "@hibernaut/domain/errors";
import { type Grant, hasScope, reachesApp } from "@hibernaut/domain/scopes";
import type { WebhookRecord } from "@hibernaut/domain/webhook";
import { unknownWebhook } from "@hibernaut/events";
import type { FastifyRequest } from "fastify";
import { requireReach } from "../access.ts";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { NoBody, Ok } from "../schemas.ts";
import { deliveryWire, webhookWire } from "../webhook-views.ts";
import {
  CreateWebhookBody,
  DELIVERIES_SHOWN,
  DeliveriesQuery,
  DeliveryList,
  NewWebhookReply,
  RotateWebhookBody,
  SECRET_OVERLAP_S,
  UpdateWebhookBody,
  WebhookList,
  WebhookParams,
  WebhookReply,
  WebhookTestReply,
} from "./webhooks.schemas.ts";

const route = routesOf("webhooks");

type Asking = Pick<FastifyRequest, "token">;

/**
 * Registers the routes of webhooks. URLs may contain what must stay secret, so even to see them takes `deploy`. A webhook
 * for all apps and the platform takes `admin` for all apps.
 */
export function webhookRoutes(app: Api, { webhooks }: Pick<ApiDeps, "webhooks">): void {
  const path = "/v1/webhooks/:webhook_id";
  const config = { scope: "deploy", limited: "filtered" } as const;
  /** Throws `not_found` for one out of the token's reach, as for one that does not exist. */
  const reached = (id: string, { token }: Asking): WebhookRecord => {
    const webhook = webhooks.get(id);
    if (!reachesWebhook(token, webhook)) throw unknownWebhook(id);
    return webhook;
  };

  app.get("/v1/webhooks", route("List webhooks", config, { reply: WebhookList }), async ({ token }) => ({
    webhooks: webhooks
      .list()
      .filter((webhook) => reachesWebhook(token, webhook))
      .map(webhookWire),
  }));

  app.post(
    "/v1/webhooks",
    route(
      "Create a webhook; its secret is shown once",
      { ...config, audited: ["url", "events", "apps"] },
      { body: CreateWebhookBody, created: NewWebhookReply },
    ),
    async ({ body, token }, reply) => {
      const { url, events = [], apps = null, description = "" } = body;
      requireApps(token, apps);
      requirePlace(token);
      const made = webhooks.create({ url, events: unique(events), apps: apps && unique(apps), description });
      return reply.code(201).send({ ...webhookWire(made.webhook), secret: made.secret });
    },
  );

  app.get(path, route("Show a webhook", config, { params: WebhookParams, reply: WebhookReply }), async (request) =>
    webhookWire(reached(request.params.webhook_id, request)),
  );

  app.patch(
    path,
    route(
      "Change a webhook, disable it, or enable it again",
      { ...config, audited: ["url", "events", "apps", "enabled", "skip"] },
      { params: WebhookParams, body: UpdateWebhookBody, reply: WebhookReply },
    ),
    async (request) => {
      const { enabled, skip = false, events, apps, ...rest } = request.body;
      const { id } = reached(request.params.webhook_id, request);
      if (skip && enabled !== true)
        throw new HibernautError("invalid_argument", "`skip` needs `enabled: true`.", { field: "skip" });
      if (apps !== undefined) requireApps(request.token, apps);
      const changes = {
        ...rest,
        ...(events !== undefined && { events: unique(events) }),
        ...(apps !== undefined && { apps: apps && unique(apps) }),
      };
      // With the change: a new address gets nothing that is to be skipped.
      await webhooks.update(id, changes, { disable: enabled === false || skip });
      if (enabled === true) await webhooks.enable(id, skip);
      return webhookWire(webhooks.get(id));
    },
  );

  app.delete(
    path,
    route("Remove a webhook, with what waits", config, { params: WebhookParams, reply: Ok }),
    async (request) => {
      await webhooks.remove(reached(request.params.webhook_id, request).id);
      return { ok: true as const };
    },
  );

  app.post(
    `${path}/test`,
    route("Send a test message once, and say what came of it", config, {
      params: WebhookParams,
      optionalBody: NoBody,
      reply: WebhookTestReply,
    }),
    async (request, reply) => {
      const { id } = reached(request.params.webhook_id, request);
      const { messageId, durationMs, ...result } = await webhooks.test(id, clientGone(reply));
      return { ...result, message_id: messageId, duration_ms: durationMs };
    },
  );

  app.post(
    `${path}/rotate`,
    route(
      "Create a new secret; the old one signs, too, for a while",
      { ...config, audited: ["overlap"] },
      { params: WebhookParams, optionalBody: RotateWebhookBody, created: NewWebhookReply },
    ),
    async (request, reply) => {
      const { id } = reached(request.params.webhook_id, request);
      const made = await webhooks.rotate(id, (request.body.overlap ?? SECRET_OVERLAP_S) * 1000);
      return reply.code(201).send({ ...webhookWire(made.webhook), secret: made.secret });
    },
  );

  app.get(
    `${path}/deliveries`,
    route("List what is on its way to a webhook, and what arrived lately, newest first", config, {
      params: WebhookParams,
      querystring: DeliveriesQuery,
      reply: DeliveryList,
    }),
    async (request) => {
      const { id, disabled } = reached(request.params.webhook_id, request);
      const found = webhooks.deliveries(id, request.query.limit ?? DELIVERIES_SHOWN);
      return { deliveries: found.map((each) => deliveryWire(each, disabled !== null)) };
    },
  );
}

/**
 * Whether a token reaches a webhook. One that is limited reaches none that has had events of another app, or of an earlier
 * app of the same name: they may be in its queue and its log.
 */
function reachesWebhook(token: Grant | null, { apps }: WebhookRecord): boolean {
  if (apps?.some(({ until }) => until !== null) === true || apps?.length === 0) return (token?.apps ?? null) === null;
  return reaches(token, apps && apps.map(({ name }) => name));
}

/** Whether a token may have the events of these apps sent somewhere; null for those of all apps and of the platform. */
function reaches(token: Grant | null, apps: readonly string[] | null): boolean {
  if (token === null) return true;
  if (token.apps === null) return apps !== null || hasScope(token.scopes, "admin");
  return apps !== null && apps.every((app) => reachesApp(token, app));
}

/** Throws unless the token may have the events of these apps sent somewhere. */
function requireApps(token: Grant | null, apps: readonly string[] | null): void {
  if (reaches(token, apps)) return;
  for (const app of apps ?? []) requireReach(token, app);
  const message =
    "A webhook for all apps and the platform needs a token with the scope `admin` for all apps. Name the apps that are meant: `hibernaut webhooks create <url> --app <name>`, over HTTP `apps`.";
  throw new HibernautError("permission_denied", message, {
    ...{ missing_scope: "admin", scopes: token?.scopes },
    needs_apps: true,
  });
}

/**
 * Throws for a token that is limited to previews. A webhook outlives the app that it is for, and such a token makes as many apps as
 * it likes, one after the other: it could take the places of all webhooks of the platform.
 */
function requirePlace(token: Grant | null): void {
  if (token?.previewsOf === undefined) return;
  const message =
    "A token that is limited to previews creates no webhooks, because they outlive the previews. Someone with a token for all apps can: `hibernaut webhooks create <url> --app <name>`.";
  throw new HibernautError("permission_denied", message, { apps: token.apps });
}

function unique(words: readonly string[]): string[] {
  return [...new Set(words)];
}
