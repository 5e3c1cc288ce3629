/** All settings of the service, with their environment variables, defaults and reasons. */

/** Where PostgreSQL is. Port and user default to those of PostgreSQL's own tools; by default there is no password. */
export interface PostgresSettings {
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
  /**
   * `DB_TIMEOUT_MS`. Time limit for connecting and for each statement. The default, 2 s, is many times what a nearby
   * database needs. A machine under software emulation, or a distant database, may need more.
   */
  queryTimeoutMs: number;
  /** `DB_START_TIMEOUT_MS`. How long to wait at the start for a database that may be starting too. 0 does not wait. */
  startTimeoutMs: number;
}

export interface Settings {
  /** `PORT`. 0 chooses a free port. */
  port: number;
  /** `HOST`. Loopback by default, because the service has no authentication and must not be exposed by accident. */
  host: string;
  /** `DB_HOST` and the other `DB_` variables. Undefined without `DB_HOST`, which selects the embedded database. */
  postgres: PostgresSettings | undefined;
  /** `ORDERS_SQLITE_PATH`. The embedded database's file, made when it does not exist. */
  sqlitePath: string;
  /** `LOG_LEVEL`. `debug` logs every request. */
  logLevel: string;
}

/** A setting is not valid. The message names it and says which values are. */
export class SettingError extends Error {
  override name = "SettingError";
}

const LAST_PORT = 65_535;
const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];

/**
 * Reads the settings. Throws a {@link SettingError} for an invalid value. An empty value counts as absent.
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
