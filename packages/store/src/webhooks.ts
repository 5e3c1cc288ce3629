/** Webhooks in the database. Their secrets are encrypted before they get here. */
import type { WebhookApp, WebhookRecord } from "@hibernaut/domain/webhook";
import type { Database } from "better-sqlite3";
import { UNKNOWN, whole } from "./database.ts";
import { factOf, type OutboxWriter } from "./outbox.ts";
import type { WebhookChanges, WebhookStore } from "./webhook-contract.ts";

interface Row {
  id: string;
  url: string;
  description: string;
  events: string;
  limited: number;
  apps: string;
  createdAt: string;
  position: number;
  disabledAt: string | null;
  disabledReason: string | null;
  ciphertext: Uint8Array;
  nonce: Uint8Array;
  formerCiphertext: Uint8Array | null;
  formerNonce: Uint8Array | null;
  formerUntil: string | null;
}

type WrittenRow = Omit<Row, "apps" | "position" | "disabledAt" | "disabledReason">;

const SELECT = `SELECT id, url, description, events, limited, created_at AS createdAt, position,
  disabled_at AS disabledAt, disabled_reason AS disabledReason, ciphertext, nonce,
  former_ciphertext AS formerCiphertext, former_nonce AS formerNonce, former_until AS formerUntil,
  (SELECT json_group_array(json_object('name', app, 'since', since, 'until', until)) FROM webhook_apps WHERE webhook = webhooks.id) AS apps
  FROM webhooks`;
/** What was ever written to the stream of events. */
const NEWEST = "coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'outbox'), 0)";

/** Returns the repository of webhooks in an open, migrated database. */
export function webhookStore(db: Database, outbox: OutboxWriter): WebhookStore {
  const list = db.prepare<[], Row>(`${SELECT} ORDER BY seq`);
  const find = db.prepare<[string], Row>(`${SELECT} WHERE id = ?`);
  const insert = db.prepare<WrittenRow>(`
    INSERT INTO webhooks (id, url, description, events, limited, created_at, position, ciphertext, nonce,
      former_ciphertext, former_nonce, former_until)
    VALUES (@id, @url, @description, @events, @limited, @createdAt, ${NEWEST}, @ciphertext, @nonce,
      @formerCiphertext, @formerNonce, @formerUntil)
  `);
  const update = db.prepare<WrittenRow>(`
    UPDATE webhooks SET url = @url, description = @description, events = @events, limited = @limited,
      ciphertext = @ciphertext, nonce = @nonce, former_ciphertext = @formerCiphertext, former_nonce = @formerNonce,
      former_until = @formerUntil
    WHERE id = @id
  `);
  const knowsApp = db.prepare<[string]>("SELECT 1 FROM apps WHERE name = ?");
  const addApp = db.prepare<{ id: string; app: string; since: number | null }>(`
    INSERT OR IGNORE INTO webhook_apps (webhook, app, since, until) VALUES (@id, @app, coalesce(@since, ${NEWEST}), NULL)
  `);
  const dropApps = db.prepare<{ id: string; apps: string }>(`
    DELETE FROM webhook_apps
    WHERE webhook = @id AND (until IS NOT NULL OR app NOT IN (SELECT value FROM json_each(@apps)))
  `);
  // Someone who reaches only the apps that are left must not see what happened to the others.
  const dropOthers = db.prepare<{ id: string }>(`
    DELETE FROM webhook_deliveries WHERE webhook = @id AND type <> 'gap'
    AND (app IS NULL OR app NOT IN (SELECT app FROM webhook_apps WHERE webhook = @id))
  `);
  const remove = db.prepare<[string]>("DELETE FROM webhooks WHERE id = ?");
  const disable = db.prepare<{ id: string; at: string; reason: string }>(
    "UPDATE webhooks SET disabled_at = @at, disabled_reason = @reason WHERE id = @id",
  );
  const enable = db.prepare<{ id: string; skip: number }>(`
    UPDATE webhooks SET disabled_at = NULL, disabled_reason = NULL,
      position = CASE WHEN @skip THEN ${NEWEST} ELSE position END
    WHERE id = @id
  `);
  const again = db.prepare<[string]>(
    "UPDATE webhook_deliveries SET attempts = 0, next_at = 0 WHERE webhook = ? AND state = 'pending'",
  );
  const skip = db.prepare<[string]>(
    "UPDATE webhook_deliveries SET state = 'skipped', body = '' WHERE webhook = ? AND state = 'pending'",
  );

  const get = (id: string): WebhookRecord | undefined => {
    const row = find.get(id);
    return row && recordOf(row);
  };
  /** Those that it has stay as they are; others begin after `since`, by default with what comes. */
  const setApps = (id: string, apps: readonly string[], since: number | null = null): void => {
    dropApps.run({ id, apps: JSON.stringify(apps) });
    for (const app of apps) {
      if (knowsApp.get(app) === undefined) throw UNKNOWN;
      addApp.run({ id, app, since });
    }
  };
  const tell = (what: string, webhook: WebhookRecord, more: Record<string, unknown> = {}): void => {
    const { id, url, apps } = webhook;
    const [only, ...others] = (apps ?? []).filter(({ until }) => until === null);
    const app = others.length === 0 ? (only?.name ?? null) : null;
    outbox.add(factOf(`webhook.${what}`, app, { webhook_id: id, host: new URL(url).host, ...more }));
  };

  const require = (id: string): WebhookRecord => {
    const webhook = get(id);
    if (webhook === undefined) throw UNKNOWN;
    return webhook;
  };

  return {
    get,
    list: () => list.all().map(recordOf),
    insert: whole(db, (webhook: WebhookRecord) => {
      insert.run(rowOf(webhook));
      setApps(
        webhook.id,
        (webhook.apps ?? []).map(({ name }) => name),
      );
      tell("created", webhook);
    }),
    update: whole(db, (id: string, { apps, ...changes }: WebhookChanges) => {
      const before = require(id);
      const after = { ...before, ...changes };
      update.run({ ...rowOf(after), limited: Number((apps === undefined ? before.apps : apps) !== null) });
      // A webhook that had everything misses nothing of an app that it keeps.
      if (apps !== undefined) setApps(id, apps ?? [], before.apps === null ? before.position : null);
      if (apps !== undefined && apps !== null) dropOthers.run({ id });
      tell("changed", require(id));
    }),
    remove: whole(db, (id: string) => {
      const webhook = require(id);
      remove.run(id);
      tell("removed", webhook);
    }),
    disable: whole(db, (id: string, { at, reason }: { at: string; reason: string }) => {
      const webhook = require(id);
      if (webhook.disabled !== null) throw UNKNOWN;
      disable.run({ id, at, reason });
      tell("disabled", webhook, { reason });
    }),
    enable: whole(db, (id: string, { skip: skipping }: { skip: boolean }) => {
      const webhook = require(id);
      if (webhook.disabled === null) throw UNKNOWN;
      enable.run({ id, skip: Number(skipping) });
      (skipping ? skip : again).run(id);
      tell("enabled", webhook);
    }),
  };
}

function rowOf({ events, apps, secret, formerSecret, ...rest }: WebhookRecord): WrittenRow {
  const { id, url, description, createdAt } = rest;
  return {
    ...{ id, url, description, createdAt },
    events: JSON.stringify(events),
    limited: Number(apps !== null),
    ciphertext: secret.ciphertext,
    nonce: secret.nonce,
    formerCiphertext: formerSecret?.ciphertext ?? null,
    formerNonce: formerSecret?.nonce ?? null,
    formerUntil: formerSecret?.until ?? null,
  };
}

function recordOf({ events, limited, apps, ...row }: Row): WebhookRecord {
  const { id, url, description, createdAt, position, disabledAt, disabledReason, ciphertext, nonce } = row;
  const { formerCiphertext, formerNonce, formerUntil } = row;
  return {
    ...{ id, url, description, createdAt, position },
    events: JSON.parse(events) as string[],
    apps: limited === 0 ? null : (JSON.parse(apps) as WebhookApp[]),
    disabled: disabledAt === null ? null : { at: disabledAt, reason: disabledReason ?? "" },
    secret: { ciphertext, nonce },
    formerSecret:
      formerCiphertext === null || formerNonce === null || formerUntil === null
        ? null
        : { ciphertext: formerCiphertext, nonce: formerNonce, until: formerUntil },
  };
}
