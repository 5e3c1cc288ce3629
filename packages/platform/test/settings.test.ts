import { globSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { configFolder, readSettings, SETTING_NAMES } from "../src/settings.ts";
import { unknownSettings } from "../src/unknown-settings.ts";
import { tempFolder } from "./helpers/temp.ts";

const ROOT = join(import.meta.dirname, "../../..");
const NOWHERE = { XDG_CONFIG_HOME: "/nowhere" };

describe("settings", () => {
  test("the environment overrides the file, the file overrides the default", async () => {
    const folder = await tempFolder("settings");
    const environment = { XDG_CONFIG_HOME: folder };
    await mkdir(configFolder(environment));
    const file = { HIBERNAUT_REGION: "cellar", HIBERNAUT_LAYER_SIZE_MB: 100 };
    await writeFile(join(configFolder(environment), "settings.json"), JSON.stringify(file));
    const settings = readSettings({ ...environment, HIBERNAUT_REGION: "attic" });
    expect(settings).toMatchObject({ region: "attic", layerSizeMb: 100, accelerator: "auto" });
  });

  test.each([
    ["HIBERNAUT_API_LISTEN", "4280", "host:port"],
    ["HIBERNAUT_API_LISTEN", "localhost:70000", "host:port"],
    ["HIBERNAUT_DATA_DIR", "data", "an absolute path"],
    ["HIBERNAUT_ACCELERATOR", "hvf", "one of auto, kvm, tcg"],
    [
      "HIBERNAUT_IDLE_CHECK_INTERVAL",
      "0",
      "a time of 1 to 3600 seconds, as a whole number of them or with a unit: 30s",
    ],
    ["HIBERNAUT_PROXY_MAX_HELD", "10k", "a whole number from 1 to"],
    ["HIBERNAUT_HOOK_TIMEOUT_MS", "2m", "a time of 100 to 60000 milliseconds"],
    ["HIBERNAUT_IDLE_CHECK_INTERVAL", "1500ms", "a time of 1 to 3600 seconds"],
    ["HIBERNAUT_SUSPEND_MAX_MEMORY_MB", "2e3", "a size of 128 to 1048576 MB, .*512mb or 2gb"],
    ["HIBERNAUT_SUSPEND_MAX_MEMORY_MB", "1025kb", "a size of"],
    ["HIBERNAUT_REGION", "Not a region", "1 to 32 of"],
  ])("%s=%s names itself and says what it would accept", (name, value, wanted) => {
    const read = () => readSettings({ ...NOWHERE, [name]: value });
    expect(read).toThrowError(expect.objectContaining({ code: "invalid_argument", details: { setting: name } }));
    expect(read).toThrowError(new RegExp(`^${name} must be .*${wanted}`));
  });

  test.each([
    ["HIBERNAUT_DRAIN_TIMEOUT_MS", "2500", { drainTimeoutMs: 2500 }],
    ["HIBERNAUT_DRAIN_TIMEOUT_MS", "2500ms", { drainTimeoutMs: 2500 }],
    ["HIBERNAUT_DRAIN_TIMEOUT_MS", "5m", { drainTimeoutMs: 300_000 }],
    ["HIBERNAUT_BOOT_TIMEOUT_MS", "1m30s", { bootTimeoutMs: 90_000 }],
    ["HIBERNAUT_KEEPALIVE_MAX_TTL", "2h", { keepAwakeMaxS: 7200 }],
    ["HIBERNAUT_IMAGE_KEEP_HOURS", "48h", { imageKeepH: 48 }],
    ["HIBERNAUT_IMAGE_KEEP_HOURS", "90m", undefined],
    ["HIBERNAUT_LAYER_SIZE_MB", "2gb", { layerSizeMb: 2048 }],
    ["HIBERNAUT_LOG_MAX_MB", "32 MB", { logMaxMb: 32 }],
  ])("%s=%s is read with its unit, and a plain number counts that of the name", (name, value, expected) => {
    const read = () => readSettings({ ...NOWHERE, [name]: value });
    if (expected === undefined) expect(read).toThrow(name);
    else expect(read()).toMatchObject(expected);
  });

  test("a file that is not an object of settings is named", async () => {
    const folder = await tempFolder("settings");
    await mkdir(join(folder, "hibernaut"));
    await writeFile(join(folder, "hibernaut/settings.json"), "[1]");
    expect(() => readSettings({ XDG_CONFIG_HOME: folder })).toThrowError(/settings\.json must be a JSON object/);
  });

  test("addresses may be IPv6, ports may be 0", () => {
    const { apiListen } = readSettings({ ...NOWHERE, HIBERNAUT_API_LISTEN: "[::1]:0" });
    expect(apiListen).toEqual({ host: "::1", port: 0 });
  });
});

describe("a name that is not a setting", () => {
  test("is told with the one that was probably meant", () => {
    const environment = { ...NOWHERE, HIBERNAUT_LOG_LEVL: "warn", HIBERNAUT_FOO: "1", HIBERNAUT_DATADIR: "" };
    expect(unknownSettings(environment)).toEqual([
      "The variable HIBERNAUT_FOO is not a setting and has no effect. See docs/settings.md for all settings.",
      "The variable HIBERNAUT_LOG_LEVL is not a setting and has no effect. Did you mean HIBERNAUT_LOG_LEVEL?",
    ]);
  });

  test("is found in the file, too", async () => {
    const folder = await tempFolder("settings");
    const environment = { XDG_CONFIG_HOME: folder };
    await mkdir(configFolder(environment));
    const file = join(configFolder(environment), "settings.json");
    await writeFile(file, JSON.stringify({ HIBERNAUT_REGON: "attic", HIBERNAUT_REGION: "attic" }));
    expect(unknownSettings(environment)).toEqual([
      `HIBERNAUT_REGON in ${file} is not a setting and has no effect. Did you mean HIBERNAUT_REGION?`,
    ]);
  });

  test("is none that the repository itself reads or sets", async () => {
    const files = globSync("{packages/*/{src,bin,test},packages/guest/agent,scripts,bench}/**/*.{ts,js,mjs}", {
      cwd: ROOT,
      exclude: ["**/node_modules/**", "**/settings.test.ts", "**/serve-terminal.test.ts"],
    });
    const texts = await Promise.all(files.map((file) => readFile(join(ROOT, file), "utf8")));
    const names = texts.flatMap((text) => text.match(/\bHIBERNAUT_[A-Z_]*[A-Z]\b/g) ?? []);
    expect(names.length).toBeGreaterThan(100);
    // Not a variable: the build puts the product's version in its place.
    const environment = Object.fromEntries(
      names.filter((name) => name !== "HIBERNAUT_VERSION").map((name) => [name, "1"]),
    );
    expect(unknownSettings({ ...NOWHERE, ...environment })).toEqual([]);
    expect(names).toEqual(expect.arrayContaining([...SETTING_NAMES]));
  });
});
