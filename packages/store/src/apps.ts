/** Apps in the database. */
import type { AppNetwork } from "@hibernaut/domain/app-network";
import type { AppRecord } from "@hibernaut/domain/machine";
import type { Preview } from "@hibernaut/domain/preview";
import type { QuotaOverrides } from "@hibernaut/domain/quota";
import type { Database } from "better-sqlite3";
import type { AppStore } from "./contract.ts";
import { atomic } from "./database.ts";
import { factOf, type OutboxWriter } from "./outbox.ts";

/** `quota`, `network` and `preview` are JSON. */
interface AppRow extends Omit<AppRecord, "quota" | "statusPage" | "network" | "preview"> {
  quota: string | null;
  statusPage: number;
  network: string | null;
  preview: string | null;
}

/** Returns the repository of apps in an open, migrated database. */
export function appStore(db: Database, outbox: OutboxWriter): AppStore {
  const insert = db.prepare<Omit<AppRow, "statusPage">>(
    `INSERT INTO apps (name, created_at, quota, network, preview)
     VALUES (@name, @createdAt, @quota, @network, @preview) ON CONFLICT DO NOTHING`,
  );
  const select = "SELECT name, created_at AS createdAt, quota, status_page AS statusPage, network, preview FROM apps";
  const get = db.prepare<[string], AppRow>(`${select} WHERE name = ?`);
  const list = db.prepare<[], AppRow>(`${select} ORDER BY name`);
  const inNetwork = db.prepare<[string], AppRow>(`${select} WHERE network ->> '$.name' = ? ORDER BY name`);
  const setFirstEvent = db.prepare<{ name: string; sequence: number }>(
    "UPDATE apps SET first_event = @sequence WHERE name = @name",
  );
  const firstEvent = db.prepare<[string], { sequence: number }>(
    "SELECT first_event AS sequence FROM apps WHERE name = ?",
  );
  const setQuota = db.prepare<{ name: string; quota: string | null }>(
    "UPDATE apps SET quota = @quota WHERE name = @name",
  );
  const setStatusPage = db.prepare<{ name: string; on: number }>(
    "UPDATE apps SET status_page = @on WHERE name = @name",
  );
  const setPreview = db.prepare<{ name: string; preview: string }>(
    "UPDATE apps SET preview = @preview WHERE name = @name",
  );
  const setNetwork = db.prepare<{ name: string; network: string }>(
    "UPDATE apps SET network = @network WHERE name = @name",
  );
  // One statement, so that no machine or volume can be added between the check and the deletion.
  const remove = db.prepare<{ name: string }>(`
    DELETE FROM apps WHERE name = @name
    AND NOT EXISTS (SELECT 1 FROM machines WHERE app = @name AND state <> 'destroyed')
    AND NOT EXISTS (SELECT 1 FROM volumes WHERE app = @name)
    AND NOT EXISTS (SELECT 1 FROM templates WHERE app = @name)
  `);
  // Webhooks get what happened to the app so far, and nothing of a later app of the same name.
  const endWebhooks = db.prepare<{ app: string; until: number }>(
    "UPDATE webhook_apps SET until = @until WHERE app = @app AND until IS NULL",
  );

  return {
    insert: atomic(db, ({ name, createdAt, quota, network, preview }: AppRecord) => {
      const row = { name, createdAt, quota: json(quota), network: json(network), preview: json(preview) };
      if (insert.run(row).changes === 0) return false;
      setFirstEvent.run({ name, sequence: outbox.add(factOf("app.created", name, previewData(preview))) });
      return true;
    }),
    get: (name) => {
      const row = get.get(name);
      return row && recordOf(row);
    },
    firstEvent: (name) => firstEvent.get(name)?.sequence,
    list: () => list.all().map(recordOf),
    setQuota: (name, quota) => {
      const isEmpty = Object.keys(quota).length === 0;
      setQuota.run({ name, quota: isEmpty ? null : JSON.stringify(quota) });
    },
    setStatusPage: (name, on) => void setStatusPage.run({ name, on: on ? 1 : 0 }),
    setPreview: atomic(db, (name: string, preview: Preview) => {
      const { preview: before } = get.get(name) ?? { preview: null };
      setPreview.run({ name, preview: JSON.stringify(preview) });
      const told = before !== null && (JSON.parse(before) as Preview).expired === true;
      if (preview.expired === true && !told) outbox.add(factOf("app.expired", name, previewData(preview)));
    }),
    inNetwork: (network) => inNetwork.all(network).map(recordOf),
    setNetwork: (name, network) => void setNetwork.run({ name, network: JSON.stringify(network) }),
    delete: atomic(db, (name: string) => {
      if (remove.run({ name }).changes === 0) return false;
      endWebhooks.run({ app: name, until: outbox.add(factOf("app.deleted", name)) });
      return true;
    }),
  };
}

function json(value: object | undefined): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

/** What events say of a preview. */
function previewData(preview: Preview | undefined) {
  return preview && { preview_of: preview.of, expires_at: preview.expiresAt };
}

function recordOf({ name, createdAt, quota, statusPage, network, preview }: AppRow): AppRecord {
  return {
    ...{ name, createdAt },
    ...(quota !== null && { quota: JSON.parse(quota) as QuotaOverrides }),
    ...(statusPage === 1 && { statusPage: true as const }),
    ...(network !== null && { network: JSON.parse(network) as AppNetwork }),
    ...(preview !== null && { preview: JSON.parse(preview) as Preview }),
  };
}
