/** Every setting of the service: its environment variable, its default and the reason for it. */

/** Where PostgreSQL is. By default the port and the user of its own tools, no password, and a database `orders`. */
export interface PostgresSettings {
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
  /**
   * `DB_TIMEOUT_MS`. How long a connection may take to be made, and a statement to be answered. 2 s are many times what
   * a database nearby needs; a machine under software emulation, or a database far away, may need more.
   */
  queryTimeoutMs: number;
  /** `DB_START_TIMEOUT_MS`. How long the start waits for the database, which may be starting too. 0: it does not wait. */
  startTimeoutMs: number;
}

export interface Settings {
  /** `PORT`. 0 takes any free one. */
  port: number;
  /** `HOST`. Loopback by default: the service has no log-in, so it is not offered to a network by accident. */
  host: string;
  /** `DB_HOST` and all that begins with `DB_`. Undefined without `DB_HOST`: the embedded database. */
  postgres: PostgresSettings | undefined;
  /** `ORDERS_SQLITE_PATH`. The embedded database's file, made when absent. */
  sqlitePath: string;
  /** `LOG_LEVEL`. `debug` has a line for every request. */
  logLevel: string;
}

/** A setting that cannot be used; the message names it and says what would do. */
export class SettingError extends Error {
  override name = "SettingError";
}

const LAST_PORT = 65_535;
const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];

/**
 * Reads the settings. Throws a {@link SettingError} for a value that cannot be used. An empty value counts as none.
 *
 * @example
 * const settings = readSettings(process.env);
 */
export function readSettings(environment: NodeJS.ProcessEnv): Settings {
  const text = (name: string) => environment[name] || undefined;
  const host = text("DB_HOST");
  return {
    port: integer("PORT", text("PORT"), 3000, [0, LAST_PORT]),
    host: text("HOST") ?? "127.0.0.1",
    postgres:
      host === undefined
        ? undefined
        : {
            host,
            port: integer("DB_PORT", text("DB_PORT"), 5432, [1, LAST_PORT]),
            user: text("DB_USER") ?? "postgres",
            password: text("DB_PASSWORD") ?? "",
            database: text("DB_NAME") ?? "orders",
            queryTimeoutMs: integer("DB_TIMEOUT_MS", text("DB_TIMEOUT_MS"), 2000, [100, 600_000]),
            startTimeoutMs: integer("DB_START_TIMEOUT_MS", text("DB_START_TIMEOUT_MS"), 30_000, [0, 3_600_000]),
          },
    sqlitePath: text("ORDERS_SQLITE_PATH") ?? "./orders.db",
    logLevel: oneOf("LOG_LEVEL", text("LOG_LEVEL"), LOG_LEVELS, "info"),
  };
}

function integer(name: string, text: string | undefined, fallback: number, [least, most]: [number, number]): number {
  if (text === undefined) return fallback;
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most)) throw new SettingError(`${name} must be a number from ${least} to ${most}.`);
  return value;
}

function oneOf(name: string, text: string | undefined, choices: readonly string[], fallback: string): string {
  if (text === undefined) return fallback;
  if (!choices.includes(text)) throw new SettingError(`${name} must be one of ${choices.join(", ")}.`);
  return text;
}
