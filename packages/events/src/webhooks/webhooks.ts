/** Webhooks, as the API manages them. */
import { randomBytes } from "node:crypto";
import { HibernautError } from "@hibernaut/domain/errors";
import { EVENT_GROUPS } from "@hibernaut/domain/stream-event";
import type { DeliveryRecord, WebhookRecord } from "@hibernaut/domain/webhook";
import { background } from "@hibernaut/lib/background";
import type { WebhookChanges } from "@hibernaut/store";
import { Dispatcher, type DispatcherOptions } from "./dispatcher.ts";
import { testMessage } from "./message.ts";
import type { Outcome } from "./rules.ts";
import { failureText, outcomeOf } from "./rules.ts";
import { newSecret, sealSecret } from "./signing.ts";
import { refusedUrl, type TargetPolicy } from "./target.ts";

/** Webhooks of a platform. Each reads all events, and may keep a queue of deliveries. */
const MAX_WEBHOOKS = 100;
/** Webhooks that name an app: those who may deploy only this app cannot take the places of all others. */
const MAX_WEBHOOKS_OF_APP = 10;

/** What someone says about a new webhook. */
export interface NewWebhook {
  url: string;
  description: string;
  events: readonly string[];
  /** Null for all apps, and the platform. */
  apps: readonly string[] | null;
}

/** What came of a test. */
interface TestResult {
  messageId: string;
  outcome: Outcome;
  status: number | null;
  /** Null if it was delivered. */
  error: string | null;
  durationMs: number;
}

/** The webhooks of one platform. */
export class Webhooks {
  readonly #options: DispatcherOptions & { policy: TargetPolicy };
  readonly #dispatcher: Dispatcher;

  constructor(options: DispatcherOptions & { policy: TargetPolicy }) {
    this.#options = options;
    this.#dispatcher = new Dispatcher(options);
  }

  /** Attempts by outcome, and deliveries that wait, since the platform started. */
  get counts(): { attempts: Readonly<Record<Outcome, number>>; waiting: number } {
    const { attempts, waiting } = this.#dispatcher;
    return { attempts, waiting };
  }

  /** Begins to deliver. */
  start(): void {
    this.#dispatcher.start();
  }

  close(): Promise<void> {
    return this.#dispatcher.close();
  }

  list(): WebhookRecord[] {
    return this.#options.webhooks.list();
  }

  /** Throws `not_found` for one that does not exist. */
  get(id: string): WebhookRecord {
    const webhook = this.#options.webhooks.get(id);
    if (webhook === undefined) throw unknownWebhook(id);
    return webhook;
  }

  /** Creates a webhook. No other reply has its secret. */
  create({ url, description, events, apps }: NewWebhook): { webhook: WebhookRecord; secret: string } {
    const { webhooks, vault, clock } = this.#options;
    this.#requireUrl(url);
    requireTypes(events);
    const count = webhooks.list().length;
    if (count >= MAX_WEBHOOKS) throw tooMany(count);
    this.#requirePlace(apps ?? []);
    const id = `wh_${randomBytes(8).toString("hex")}`;
    const secret = newSecret();
    const webhook: WebhookRecord = {
      ...{ id, url, description, events },
      apps: apps === null ? null : apps.map((name) => ({ name, since: 0, until: null })),
      createdAt: new Date(clock.now()).toISOString(),
      position: 0,
      disabled: null,
      secret: sealSecret(vault, id, secret),
      formerSecret: null,
    };
    if (!webhooks.insert(webhook)) throw unknownApp(apps ?? []);
    background(this.#dispatcher.refresh(id), "adopting a webhook");
    return { webhook: this.get(id), secret };
  }

  /**
   * Changes a webhook. What waits is delivered to the new URL, unless it is disabled with the change. A change that is
   * refused leaves the webhook as it was.
   */
  async update(
    id: string,
    changes: Omit<WebhookChanges, "secret" | "formerSecret">,
    { disable = false }: { disable?: boolean } = {},
  ): Promise<WebhookRecord> {
    this.get(id);
    if (changes.url !== undefined) this.#requireUrl(changes.url);
    requireTypes(changes.events ?? []);
    this.#requirePlace(changes.apps ?? [], id);
    const changed = Object.keys(changes).length > 0;
    if (changed && !this.#options.webhooks.update(id, changes)) throw unknownApp(changes.apps ?? []);
    // Nothing is awaited in between: the new URL gets nothing before.
    if (disable) return this.disable(id);
    if (changed) await this.#dispatcher.refresh(id);
    return this.get(id);
  }

  /** Makes a new secret. The old one also signs for a while, in milliseconds. */
  async rotate(id: string, overlapMs: number): Promise<{ webhook: WebhookRecord; secret: string }> {
    const { webhooks, vault, clock } = this.#options;
    const old = this.get(id);
    const secret = newSecret();
    const until = new Date(clock.now() + overlapMs).toISOString();
    const formerSecret = overlapMs > 0 ? { ...old.secret, until } : null;
    webhooks.update(id, { secret: sealSecret(vault, id, secret), formerSecret });
    await this.#dispatcher.refresh(id);
    return { webhook: this.get(id), secret };
  }

  /** Delivers what waits and what happened since it was disabled; with `skip`, only what comes. */
  async enable(id: string, skip = false): Promise<WebhookRecord> {
    this.get(id);
    this.#options.webhooks.enable(id, { skip });
    await this.#dispatcher.refresh(id);
    return this.get(id);
  }

  /** Delivers nothing until it is enabled again. */
  async disable(id: string): Promise<WebhookRecord> {
    this.get(id);
    const at = new Date(this.#options.clock.now()).toISOString();
    this.#options.webhooks.disable(id, { at, reason: "Someone disabled it." });
    await this.#dispatcher.refresh(id);
    return this.get(id);
  }

  /** Removes a webhook with everything that waits. */
  async remove(id: string): Promise<void> {
    if (!this.#options.webhooks.remove(id)) throw unknownWebhook(id);
    await this.#dispatcher.refresh(id);
  }

  /** Sends a message of the type `webhook.test`, once, whether the webhook is enabled or not. */
  async test(id: string, signal: AbortSignal): Promise<TestResult> {
    const webhook = this.get(id);
    const at = new Date(this.#options.clock.now()).toISOString();
    const message = testMessage(id, at, randomBytes(16).toString("hex"));
    const { attempt, durationMs } = await this.#dispatcher.attempt(webhook, message, signal);
    const outcome = outcomeOf(attempt);
    if (outcome === "delivered") this.#dispatcher.answered(id);
    const status = "status" in attempt ? attempt.status : null;
    return { messageId: message.messageId, outcome, status, error: failureText(attempt), durationMs };
  }

  /** Lists up to `limit` deliveries, newest first. */
  deliveries(id: string, limit: number): DeliveryRecord[] {
    this.get(id);
    return this.#options.deliveries.list(id, limit);
  }

  /** Throws if there are too many webhooks of one of these apps. One that changes may keep its apps. */
  #requirePlace(apps: readonly string[], changing?: string): void {
    const webhooks = this.#options.webhooks.list();
    // Those of an app that is gone do not count: the next owner of its name cannot remove them.
    const has = ({ apps: own }: WebhookRecord, app: string) =>
      own?.some(({ name, until }) => name === app && until === null) === true;
    for (const app of apps) {
      const those = webhooks.filter((webhook) => has(webhook, app));
      if (those.length >= MAX_WEBHOOKS_OF_APP && !those.some(({ id }) => id === changing))
        throw tooManyOf(app, those.length);
    }
  }

  #requireUrl(url: string): void {
    const refusal = refusedUrl(url, this.#options.policy);
    if (refusal !== undefined) throw new HibernautError("invalid_argument", refusal, { field: "url" });
  }
}

/** A misspelled group would never be told of anything. What follows it is not checked, because more types will come. */
function requireTypes(types: readonly string[]): void {
  const groups: readonly string[] = EVENT_GROUPS;
  const unknown = types.find((type) => !groups.includes(type.split(".", 1)[0] ?? ""));
  if (unknown === undefined) return;
  const message = `\`${unknown}\` is not a type of event. Types begin with ${groups.join(", ")}; see docs/events.md.`;
  throw new HibernautError("invalid_argument", message, { field: "events" });
}

/** The error for a webhook that is not there, or not for this token. */
export function unknownWebhook(id: string): HibernautError {
  const shown = id.slice(0, 80);
  const message = `There is no webhook ${shown}. \`hibernaut webhooks list\` shows all.`;
  return new HibernautError("not_found", message, { webhook_id: shown });
}

function unknownApp(apps: readonly string[]): HibernautError {
  const names = apps.join(", ").slice(0, 200);
  const message = `One of these apps does not exist: ${names}. Create it first with \`hibernaut apps create\`.`;
  return new HibernautError("not_found", message, { apps });
}

function tooMany(count: number): HibernautError {
  const message = `The platform already has ${count} webhooks, and can have up to ${MAX_WEBHOOKS}. Remove some with \`hibernaut webhooks remove\`, or let one get the events of several apps.`;
  return new HibernautError("failed_precondition", message, { most: MAX_WEBHOOKS });
}

function tooManyOf(app: string, count: number): HibernautError {
  const message = `The app ${app} already has ${count} webhooks, and can have up to ${MAX_WEBHOOKS_OF_APP}. Remove one with \`hibernaut webhooks remove\`, or let one get more types of events.`;
  return new HibernautError("failed_precondition", message, { most: MAX_WEBHOOKS_OF_APP, app_name: app });
}
