/** Names in PostgreSQL, in the order in which they came. */
import pg from "pg";

export interface Rows {
  add(name: string): Promise<void>;
  all(): Promise<string[]>;
}

export async function openRows(host: string): Promise<Rows> {
  const pool = new pg.Pool({ host, user: "postgres", database: "postgres", max: 1, idleTimeoutMillis: 0 });
  pool.on("error", (error) => console.error(`PostgreSQL: ${error.message}`));
  await pool.query("CREATE TABLE IF NOT EXISTS names (id serial PRIMARY KEY, name text NOT NULL)");
  return {
    async add(name) {
      await pool.query("INSERT INTO names (name) VALUES ($1)", [name]);
    },
    async all() {
      const { rows } = await pool.query<{ name: string }>("SELECT name FROM names ORDER BY id");
      return rows.map(({ name }) => name);
    },
  };
}
