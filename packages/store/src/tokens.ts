/** Tokens in the database: only their hashes, never the tokens themselves. */
import { namedApps, type Scope } from "@hibernaut/domain/scopes";
import type { Database } from "better-sqlite3";
import type { TokenRecord, TokenStore } from "./contract.ts";
import { atomic, UNKNOWN, whole } from "./database.ts";

/** A row: `scopes`, `apps` and `previewsOf` are JSON. */
interface TokenRow extends Omit<TokenRecord, "scopes" | "apps" | "e2b" | "previewsOf"> {
  scopes: string;
  apps: string | null;
  e2b: number;
  previewsOf: string | null;
}

/** What is stored of a token in its own row. */
type StoredToken = Omit<TokenRow, "apps" | "previewsOf"> & { limited: number; previews: number };

const OWN_APPS = "(SELECT json_group_array(app) FROM token_apps WHERE token = tokens.id)";
/** As `isPreviewOf` has it. */
const PREVIEWS = `(SELECT json_group_array(preview.name) FROM token_apps
    JOIN apps AS production ON production.name = token_apps.app
    JOIN apps AS preview ON preview.preview ->> '$.of' = production.name
      AND preview.preview ->> '$.ofCreatedAt' = production.created_at
    WHERE token = tokens.id)`;
const COLUMNS = `id, name, hash, created_at AS createdAt, revoked_at AS revokedAt, scopes, expires_at AS expiresAt,
  last_used_at AS lastUsedAt, replaced_by AS replacedBy, e2b,
  CASE WHEN previews THEN ${PREVIEWS} WHEN limited THEN ${OWN_APPS} END AS apps,
  CASE WHEN previews THEN ${OWN_APPS} END AS previewsOf`;
const INSERT = `INSERT INTO tokens
    (id, name, hash, created_at, revoked_at, scopes, limited, previews, expires_at, last_used_at, replaced_by, e2b)
  VALUES (@id, @name, @hash, @createdAt, @revokedAt, @scopes, @limited, @previews, @expiresAt, @lastUsedAt, @replacedBy, @e2b)`;

/** Returns the repository of tokens in an open, migrated database. */
export function tokenStore(db: Database): TokenStore {
  const select = `SELECT ${COLUMNS} FROM tokens`;
  const insertToken = db.prepare<StoredToken>(INSERT);
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
  const replaceToken = db.prepare<StoredToken>(
    `${INSERT}
     ON CONFLICT (id) DO UPDATE SET name = @name, revoked_at = @revokedAt, scopes = @scopes, limited = @limited,
       previews = @previews, expires_at = @expiresAt, replaced_by = @replacedBy`,
  );
  const removeApps = db.prepare<[string]>("DELETE FROM token_apps WHERE token = ?");
  const use = db.prepare<{ id: string; at: string }>("UPDATE tokens SET last_used_at = @at WHERE id = @id");

  const rowOf = ({ apps, previewsOf, e2b, scopes, ...token }: TokenRecord): StoredToken => ({
    ...token,
    scopes: JSON.stringify(scopes),
    e2b: e2b === true ? 1 : 0,
    limited: apps === null ? 0 : 1,
    previews: previewsOf === undefined ? 0 : 1,
  });
  const add = (token: TokenRecord): void => {
    insertToken.run(rowOf(token));
    for (const app of namedApps(token)) if (insertApp.run({ token: token.id, app }).changes === 0) throw UNKNOWN;
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
      for (const app of namedApps(token)) insertApp.run({ token: token.id, app });
    }),
    remove: atomic(db, (id: string) => {
      endSessions.run(id);
      return remove.run(id).changes === 1;
    }),
  };
}

function recordOf({ scopes, apps, e2b, previewsOf, ...row }: TokenRow): TokenRecord {
  return {
    ...row,
    scopes: JSON.parse(scopes) as Scope[],
    apps: apps === null ? null : (JSON.parse(apps) as string[]),
    ...(e2b === 1 && { e2b: true as const }),
    ...(previewsOf !== null && { previewsOf: JSON.parse(previewsOf) as string[] }),
  };
}
