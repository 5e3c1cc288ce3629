/** Every setting of the service: its environment variable, its default and the reason for it. */

/** Where PostgreSQL is. By default the port and the user of its own tools, no password, and a database `orders`. */
export interface PostgresSettings {
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
}

export interface Settings {
  /** `PORT`. 0 takes any free one. */
  port: number;
  /** `HOST`. Loopback by default: the service has no log-in, so it is not offered to a network by accident. */
  host: string;
  /** `DB_HOST`, `DB_PORT`, `DB_USER`, `DB_PASSWORD`, `DB_NAME`. Undefined without `DB_HOST`: the embedded database. */
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
    port: port("PORT", text("PORT"), 3000, 0),
    host: text("HOST") ?? "127.0.0.1",
    postgres:
      host === undefined
        ? undefined
        : {
            host,
            port: port("DB_PORT", text("DB_PORT"), 5432, 1),
            user: text("DB_USER") ?? "postgres",
            password: text("DB_PASSWORD") ?? "",
            database: text("DB_NAME") ?? "orders",
          },
    sqlitePath: text("ORDERS_SQLITE_PATH") ?? "./orders.db",
    logLevel: oneOf("LOG_LEVEL", text("LOG_LEVEL"), LOG_LEVELS, "info"),
  };
}

function port(name: string, text: string | undefined, fallback: number, least: number): number {
  if (text === undefined) return fallback;
  const value = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= 65_535)) throw new SettingError(`${name} must be a number from ${least} to 65535.`);
  return value;
}

function oneOf(name: string, text: string | undefined, choices: readonly string[], fallback: string): string {
  if (text === undefined) return fallback;
  if (!choices.includes(text)) throw new SettingError(`${name} must be one of ${choices.join(", ")}.`);
  return text;
}
