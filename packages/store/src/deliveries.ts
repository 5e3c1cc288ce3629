/**
 * What is on its way to webhooks, and what arrived lately. Nothing here waits for the disk: after a power cut, some of it
 * is delivered again.
 */
import type { AttemptRecord, DeliveryRecord, NewDelivery, PendingDelivery } from "@hibernaut/domain/webhook";
import type { Database } from "better-sqlite3";
import { atomic, withoutSync } from "./database.ts";
import type { DeliveryStore } from "./webhook-contract.ts";

/** Ended deliveries kept for each webhook, for the log: enough to see what a receiver did wrong. */
export const KEPT_DELIVERIES = 200;

interface Row {
  sequence: number;
  messageId: string;
  type: string;
  app: string | null;
  machine: string | null;
  state: string;
  attempts: number;
  nextAt: number;
  at: string | null;
  status: number | null;
  error: string | null;
  durationMs: number | null;
}

interface Attempted extends AttemptRecord {
  webhook: string;
  sequence: number;
}

/** Returns the deliveries in an open, migrated database. */
export function deliveryStore(db: Database): DeliveryStore {
  const move = db.prepare<{ webhook: string; position: number }>(
    "UPDATE webhooks SET position = @position WHERE id = @webhook",
  );
  // A webhook that was removed a moment ago takes nothing in.
  const insert = db.prepare<NewDelivery & { webhook: string }>(`
    INSERT OR IGNORE INTO webhook_deliveries (webhook, sequence, lane, message_id, type, app, machine_id, body)
    SELECT id, @sequence, @lane, @messageId, @type, @app, @machine, @body FROM webhooks WHERE id = @webhook
  `);
  const pending = db.prepare<[string], PendingDelivery>(`
    SELECT sequence, lane, attempts, next_at AS nextAt FROM webhook_deliveries
    WHERE webhook = ? AND state = 'pending' ORDER BY sequence
  `);
  const message = db.prepare<{ webhook: string; sequence: number }, Pick<NewDelivery, "messageId" | "body">>(`
    SELECT message_id AS messageId, body FROM webhook_deliveries
    WHERE webhook = @webhook AND sequence = @sequence AND state = 'pending'
  `);
  const last = "attempts = attempts + 1, at = @at, status = @status, error = @error, duration_ms = @durationMs";
  const one = "WHERE webhook = @webhook AND sequence = @sequence AND state = 'pending'";
  const delivered = db.prepare<Attempted>(
    `UPDATE webhook_deliveries SET ${last}, state = 'delivered', body = '' ${one}`,
  );
  const failed = db.prepare<Attempted & { nextAt: number }>(
    `UPDATE webhook_deliveries SET ${last}, next_at = @nextAt ${one}`,
  );
  const trim = db.prepare<{ webhook: string }>(`
    DELETE FROM webhook_deliveries WHERE webhook = @webhook AND state <> 'pending' AND sequence <= (
      SELECT sequence FROM webhook_deliveries WHERE webhook = @webhook AND state <> 'pending'
      ORDER BY sequence DESC LIMIT 1 OFFSET ${KEPT_DELIVERIES}
    )
  `);
  const list = db.prepare<[string, number], Row>(`
    SELECT sequence, message_id AS messageId, type, app, machine_id AS machine, state, attempts, next_at AS nextAt,
      at, status, error, duration_ms AS durationMs
    FROM webhook_deliveries WHERE webhook = ? ORDER BY sequence DESC LIMIT ?
  `);
  const takeIn = atomic(db, (webhook: string, position: number, deliveries: readonly NewDelivery[]) => {
    move.run({ webhook, position });
    for (const delivery of deliveries) insert.run({ ...delivery, webhook });
  });
  const end = atomic(db, (attempt: Attempted) => {
    delivered.run(attempt);
    trim.run({ webhook: attempt.webhook });
  });

  return {
    takeIn: (webhook, position, deliveries) => withoutSync(db, () => takeIn(webhook, position, deliveries)),
    pending: (webhook) => pending.all(webhook),
    message: (webhook, sequence) => message.get({ webhook, sequence }),
    delivered: (webhook, sequence, attempt) => withoutSync(db, () => end({ ...attempt, webhook, sequence })),
    failed: (webhook, sequence, attempt, nextAt) =>
      withoutSync(db, () => void failed.run({ ...attempt, webhook, sequence, nextAt })),
    list: (webhook, limit) => list.all(webhook, limit).map(recordOf),
  };
}

function recordOf({ at, status, error, durationMs, state, ...row }: Row): DeliveryRecord {
  return {
    ...row,
    state: state as DeliveryRecord["state"],
    last: at === null ? null : { at, status, error, durationMs: durationMs ?? 0 },
  };
}
