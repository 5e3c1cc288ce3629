/** Secrets in the database. They are encrypted before they get here. */
import type { Database } from "better-sqlite3";
import type { SecretRecord, SecretStore } from "./contract.ts";
import { atomic } from "./database.ts";
import { factOf, type OutboxWriter } from "./outbox.ts";

/** Returns the repository of secrets in an open, migrated database. */
export function secretStore(db: Database, outbox: OutboxWriter): SecretStore {
  const select = "SELECT app, name, ciphertext, nonce, digest, updated_at AS updatedAt FROM secrets";
  const list = db.prepare<[string], SecretRecord>(`${select} WHERE app = ? ORDER BY name`);
  // Secrets of webhooks are encrypted with the same key.
  const any = db.prepare<[], SecretRecord>(`
    ${select} UNION ALL SELECT '', 'webhook ' || id, ciphertext, nonce, '', created_at FROM webhooks LIMIT 1
  `);
  const put = db.prepare<SecretRecord>(`
    INSERT OR REPLACE INTO secrets (app, name, ciphertext, nonce, digest, updated_at)
    VALUES (@app, @name, @ciphertext, @nonce, @digest, @updatedAt)
  `);
  const remove = db.prepare<{ app: string; name: string }>("DELETE FROM secrets WHERE app = @app AND name = @name");
  return {
    list: (app) => list.all(app),
    any: () => any.get(),
    set: atomic(db, (secrets: readonly SecretRecord[]) => {
      for (const secret of secrets) {
        put.run(secret);
        outbox.add(factOf("secret.set", secret.app, { name: secret.name }));
      }
    }),
    remove: atomic(db, (app: string, name: string) => {
      if (remove.run({ app, name }).changes === 0) return false;
      outbox.add(factOf("secret.unset", app, { name }));
      return true;
    }),
  };
}
