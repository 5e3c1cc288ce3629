/** Tokens in the database: only their hashes, never the tokens themselves. */
import type { Database } from "better-sqlite3";
import type { TokenRecord, TokenStore } from "./contract.ts";

/** Returns the repository of tokens in an open, migrated database. */
export function tokenStore(db: Database): TokenStore {
  const select = "SELECT id, name, hash, created_at AS createdAt, revoked_at AS revokedAt FROM tokens";
  const insert = db.prepare<TokenRecord>(
    "INSERT INTO tokens (id, name, hash, created_at, revoked_at) VALUES (@id, @name, @hash, @createdAt, @revokedAt)",
  );
  const list = db.prepare<[], TokenRecord>(`${select} ORDER BY seq`);
  const findByHash = db.prepare<[string], TokenRecord>(`${select} WHERE hash = ?`);
  const revoke = db.prepare<{ id: string; at: string }>(
    "UPDATE tokens SET revoked_at = @at WHERE id = @id AND revoked_at IS NULL",
  );

  return {
    insert: (token) => void insert.run(token),
    list: () => list.all(),
    findByHash: (hash) => findByHash.get(hash),
    revoke: (id, at) => revoke.run({ id, at }).changes === 1,
  };
}
