/** Tokens in the database: only their hashes, never the tokens themselves. */
import type { Scope } from "@hibernaut/domain/scopes";
import type { Database } from "better-sqlite3";
import type { TokenRecord, TokenStore } from "./contract.ts";
import { atomic, UNKNOWN, whole } from "./database.ts";

/** A row: `scopes` and `apps` are JSON. */
interface TokenRow extends Omit<TokenRecord, "scopes" | "apps" | "e2b"> {
  scopes: string;
  apps: string | null;
  e2b: number;
}

const COLUMNS = `id, name, hash, created_at AS createdAt, revoked_at AS revokedAt, scopes, expires_at AS expiresAt,
  last_used_at AS lastUsedAt, replaced_by AS replacedBy, e2b,
  CASE WHEN limited THEN (SELECT json_group_array(app) FROM token_apps WHERE token = tokens.id) END AS apps`;

/** Returns the repository of tokens in an open, migrated database. */
export function tokenStore(db: Database): TokenStore {
  const select = `SELECT ${COLUMNS} FROM tokens`;
  const insertToken = db.prepare<TokenRow & { limited: number }>(
    `INSERT INTO tokens (id, name, hash, created_at, revoked_at, scopes, limited, expires_at, last_used_at, replaced_by, e2b)
     VALUES (@id, @name, @hash, @createdAt, @revokedAt, @scopes, @limited, @expiresAt, @lastUsedAt, @replacedBy, @e2b)`,
  );
  const insertApp = db.prepare<{ token: string; app: string }>(
    "INSERT INTO token_apps (token, app) SELECT @token, name FROM apps WHERE name = @app",
  );
  const list = db.prepare<[], TokenRow>(`${select} ORDER BY seq`);
  const findByHash = db.prepare<[string], TokenRow>(`${select} WHERE hash = ?`);
  const findById = db.prepare<[string], TokenRow>(`${select} WHERE id = ?`);
  const endSessions = db.prepare<[string]>("DELETE FROM sessions WHERE token = ?");
  const revoke = db.prepare<{ id: string; at: string }>(
    "UPDATE tokens SET revoked_at = @at WHERE id = @id AND revoked_at IS NULL",
  );
  const retire = db.prepare<{ id: string; by: string; at: string }>(
    "UPDATE tokens SET expires_at = @at, replaced_by = @by WHERE id = @id AND revoked_at IS NULL",
  );
  const remove = db.prepare<[string]>("DELETE FROM tokens WHERE id = ?");
  const replaceToken = db.prepare<TokenRow & { limited: number }>(
    `INSERT INTO tokens (id, name, hash, created_at, revoked_at, scopes, limited, expires_at, last_used_at, replaced_by, e2b)
     VALUES (@id, @name, @hash, @createdAt, @revokedAt, @scopes, @limited, @expiresAt, @lastUsedAt, @replacedBy, @e2b)
     ON CONFLICT (id) DO UPDATE SET name = @name, revoked_at = @revokedAt, scopes = @scopes, limited = @limited,
       expires_at = @expiresAt, replaced_by = @replacedBy`,
  );
  const removeApps = db.prepare<[string]>("DELETE FROM token_apps WHERE token = ?");
  const use = db.prepare<{ id: string; at: string }>("UPDATE tokens SET last_used_at = @at WHERE id = @id");

  const rowOf = (token: TokenRecord) => ({
    ...token,
    scopes: JSON.stringify(token.scopes),
    apps: null,
    e2b: token.e2b === true ? 1 : 0,
    limited: token.apps === null ? 0 : 1,
  });
  const add = (token: TokenRecord): void => {
    insertToken.run(rowOf(token));
    for (const app of token.apps ?? []) if (insertApp.run({ token: token.id, app }).changes === 0) throw UNKNOWN;
  };

  return {
    insert: whole(db, add),
    replace: whole(db, (id: string, token: TokenRecord, at: string) => {
      add(token);
      if (retire.run({ id, by: token.id, at }).changes === 0) throw UNKNOWN;
    }),
    used: atomic(db, (times: ReadonlyMap<string, string>) => {
      for (const [id, at] of times) use.run({ id, at });
    }),
    list: () => list.all().map(recordOf),
    findByHash: (hash) => {
      const row = findByHash.get(hash);
      return row && recordOf(row);
    },
    get: (id) => {
      const row = findById.get(id);
      return row && recordOf(row);
    },
    revoke: atomic(db, (id: string, at: string) => {
      endSessions.run(id);
      return revoke.run({ id, at }).changes === 1;
    }),
    put: atomic(db, (token: TokenRecord) => {
      if (token.revokedAt !== null) endSessions.run(token.id);
      replaceToken.run(rowOf(token));
      removeApps.run(token.id);
      for (const app of token.apps ?? []) insertApp.run({ token: token.id, app });
    }),
    remove: atomic(db, (id: string) => {
      endSessions.run(id);
      return remove.run(id).changes === 1;
    }),
  };
}

function recordOf({ scopes, apps, e2b, ...row }: TokenRow): TokenRecord {
  return {
    ...row,
    scopes: JSON.parse(scopes) as Scope[],
    apps: apps === null ? null : (JSON.parse(apps) as string[]),
    ...(e2b === 1 && { e2b: true as const }),
  };
}
