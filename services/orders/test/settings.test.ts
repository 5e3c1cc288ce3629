import { expect, test } from "vitest";
import { describeDatabase } from "../src/database.ts";
import { readSettings, SettingError } from "../src/settings.ts";

test("the defaults select the embedded database", () => {
  const settings = readSettings({ PORT: "", DB_HOST: "", DB_PORT: "nonsense that nobody asked for" });
  expect(settings).toEqual({
    port: 3000,
    host: "127.0.0.1",
    postgres: undefined,
    sqlitePath: "./orders.db",
    logLevel: "info",
  });
  expect(describeDatabase(settings)).toBe("SQLite ./orders.db");
});

test("DB_HOST selects PostgreSQL", () => {
  const { postgres } = readSettings({ DB_HOST: "db" });
  expect(postgres).toEqual({
    host: "db",
    port: 5432,
    user: "postgres",
    password: "",
    database: "orders",
    queryTimeoutMs: 2000,
    startTimeoutMs: 30_000,
  });
});

test("every setting has an effect, and the password is not shown", () => {
  const settings = readSettings({
    PORT: "0",
    HOST: "::1",
    DB_HOST: "db",
    DB_PORT: "6432",
    DB_USER: "u",
    DB_PASSWORD: "secret",
    DB_NAME: "n",
    DB_TIMEOUT_MS: "15000",
    DB_START_TIMEOUT_MS: "0",
    ORDERS_SQLITE_PATH: "/x.db",
    LOG_LEVEL: "debug",
  });
  expect(settings).toEqual({
    port: 0,
    host: "::1",
    postgres: {
      host: "db",
      port: 6432,
      user: "u",
      password: "secret",
      database: "n",
      queryTimeoutMs: 15_000,
      startTimeoutMs: 0,
    },
    sqlitePath: "/x.db",
    logLevel: "debug",
  });
  expect(describeDatabase(settings)).toBe("PostgreSQL db:6432/n");
});

test.each([
  ["PORT", "x"],
  ["PORT", "65536"],
  ["PORT", "-1"],
  ["PORT", "1.5"],
  ["PORT", "0x10"],
  ["DB_PORT", "0"],
  ["DB_TIMEOUT_MS", "0"],
  ["DB_TIMEOUT_MS", "99"],
  ["DB_TIMEOUT_MS", "2s"],
  ["DB_TIMEOUT_MS", "600001"],
  ["DB_START_TIMEOUT_MS", "-1"],
  ["DB_START_TIMEOUT_MS", "3600001"],
  ["LOG_LEVEL", "loud"],
])("%s=%s is refused, and the error names the setting", (name, value) => {
  const read = () => readSettings({ DB_HOST: "db", [name]: value });
  expect(read).toThrow(SettingError);
  expect(read).toThrow(name);
});
