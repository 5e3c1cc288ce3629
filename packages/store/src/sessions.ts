/** Sessions in the database: only the hashes of their secrets. */
import type { Database } from "better-sqlite3";
import type { SessionLimits, SessionRecord, SessionStore } from "./contract.ts";
import { atomic, withoutSync } from "./database.ts";

/** Returns the repository of sessions in an open, migrated database. */
export function sessionStore(db: Database): SessionStore {
  const forgetUnused = db.prepare<[number]>("DELETE FROM sessions WHERE used_at < ?");
  const add = db.prepare<SessionRecord>(
    "INSERT INTO sessions (hash, token, created_at, used_at) VALUES (@hash, @tokenId, @createdAt, @usedAt)",
  );
  const forgetOfToken = db.prepare<[string, number]>(
    "DELETE FROM sessions WHERE seq IN (SELECT seq FROM sessions WHERE token = ? ORDER BY used_at DESC, seq DESC LIMIT -1 OFFSET ?)",
  );
  const forgetOldest = db.prepare<[number]>(
    "DELETE FROM sessions WHERE seq IN (SELECT seq FROM sessions ORDER BY used_at DESC, seq DESC LIMIT -1 OFFSET ?)",
  );
  const find = db.prepare<[string], SessionRecord>(
    "SELECT hash, token AS tokenId, created_at AS createdAt, used_at AS usedAt FROM sessions WHERE hash = ?",
  );
  const use = db.prepare<[number, string]>("UPDATE sessions SET used_at = ? WHERE hash = ?");
  const remove = db.prepare<[string]>("DELETE FROM sessions WHERE hash = ?");

  return {
    insert: atomic(db, (session: SessionRecord, { usedSince, perToken, overall }: SessionLimits) => {
      forgetUnused.run(usedSince);
      add.run(session);
      forgetOfToken.run(session.tokenId, perToken);
      forgetOldest.run(overall);
    }),
    find: (hash) => find.get(hash),
    // A power cut may take a minute of a session's life, and nothing else.
    use: (hash, at) => withoutSync(db, () => void use.run(at, hash)),
    remove: (hash) => remove.run(hash).changes === 1,
  };
}
