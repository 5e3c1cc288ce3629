import { globSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ownPorts } from "@hibernaut/domain/own-ports";
import type { TSchema } from "typebox";
import { describe, expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { infoOf } from "../src/forms.ts";
import { configFolder, readSettings, SETTING_GROUPS, SETTING_NAMES } from "../src/settings.ts";
import { unknownSettings } from "../src/unknown-settings.ts";

const ROOT = join(import.meta.dirname, "../../..");
const NOWHERE = { XDG_CONFIG_HOME: "/nowhere" };

describe("settings", () => {
  test("no app gets a port at which the platform listens, whichever setting says so", () => {
    const listening = SETTING_NAMES.filter(
      // The ports of apps themselves.
      (name) => name.endsWith("_LISTEN") && name !== "HIBERNAUT_TCP_LISTEN",
    );
    expect(listening.length).toBeGreaterThan(5);
    const ports = listening.map((_name, at) => 5000 + at);
    const environment = Object.fromEntries(listening.map((name, at) => [name, `127.0.0.1:${5000 + at}`]));
    const own = ownPorts(readSettings({ ...NOWHERE, ...environment }));
    expect(listening.filter((_name, at) => !own.has(ports[at] ?? 0))).toEqual([]);
  });

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
    ["HIBERNAUT_IDLE_CHECK_INTERVAL", "0", "a duration from 1s to 1h, in whole seconds, such as 30s, 5m or 1h"],
    ["HIBERNAUT_IDLE_CHECK_INTERVAL", "1500ms", "a duration from 1s to 1h, in whole seconds"],
    ["HIBERNAUT_PROXY_MAX_HELD", "10k", "a whole number from 1 to"],
    ["HIBERNAUT_HOOK_TIMEOUT", "2m", "a duration from 100ms to 60s, such as 500ms"],
    ["HIBERNAUT_HOOK_TIMEOUT_MS", "2m", "a duration from 100ms to 60s, such as 500ms"],
    ["HIBERNAUT_HOOK_TIMEOUT", "5 s", "a duration"],
    ["HIBERNAUT_PROXY_STALL_TIMEOUT", "299s", "0 or a duration from 5m to 24h, such as 5m, 30m or 1h"],
    ["HIBERNAUT_SUSPEND_MAX_MEMORY", "2e3", "a size from 128mb to 1tb, in whole megabytes, such as 512mb or 2gb"],
    ["HIBERNAUT_SUSPEND_MAX_MEMORY", "1025kb", "a size from"],
    ["HIBERNAUT_NETWORK_SUBNET", "8.8.8.0/24", "auto, or a private IPv4 subnet"],
    ["HIBERNAUT_NETWORK_SUBNET", "10.0.0.0/8", "auto, or a private IPv4 subnet"],
    ["HIBERNAUT_INSECURE_REGISTRIES", "http://a", "names of registries such as registry.lan:5000, separated by commas"],
    ["HIBERNAUT_REGION", "Not a region", "1 to 32 of"],
  ])("%s=%s names itself and says what it would accept", (name, value, wanted) => {
    const read = () => readSettings({ ...NOWHERE, [name]: value });
    expect(read).toThrowError(expect.objectContaining({ code: "invalid_argument", details: { setting: name } }));
    expect(read).toThrowError(new RegExp(`^${name} must be .*${wanted}`));
  });

  test.each([
    ["HIBERNAUT_DRAIN_TIMEOUT", "2500ms", { drainTimeoutMs: 2500 }],
    ["HIBERNAUT_DRAIN_TIMEOUT", "5m", { drainTimeoutMs: 300_000 }],
    ["HIBERNAUT_PROXY_STALL_TIMEOUT", "0", { proxyStallTimeoutMs: 0 }],
    ["HIBERNAUT_PROXY_STALL_TIMEOUT", "5m", { proxyStallTimeoutMs: 300_000 }],
    ["HIBERNAUT_DRAIN_TIMEOUT", "7", { drainTimeoutMs: 7000 }],
    ["HIBERNAUT_BOOT_TIMEOUT", "1m30s", { bootTimeoutMs: 90_000 }],
    ["HIBERNAUT_KEEPALIVE_MAX_TTL", "2h", { keepAwakeMaxS: 7200 }],
    ["HIBERNAUT_KEEPALIVE_MAX_TTL", "30", { keepAwakeMaxS: 30 }],
    ["HIBERNAUT_IMAGE_KEEP", "48h", { imageKeepH: 48 }],
    ["HIBERNAUT_IMAGE_KEEP", "7200", { imageKeepH: 2 }],
    ["HIBERNAUT_IMAGE_KEEP", "90m", undefined],
    ["HIBERNAUT_LAYER_SIZE", "2gb", { layerSizeMb: 2048 }],
    ["HIBERNAUT_LAYER_SIZE", "512", { layerSizeMb: 512 }],
    ["HIBERNAUT_LOG_MAX_SIZE", "32 MB", { logMaxMb: 32 }],
  ])("%s=%s is read with its unit, and a plain number counts seconds or megabytes", (name, value, expected) => {
    const read = () => readSettings({ ...NOWHERE, [name]: value });
    if (expected === undefined) expect(read).toThrow(name);
    else expect(read()).toMatchObject(expected);
  });

  test.each([
    ["HIBERNAUT_DRAIN_TIMEOUT_MS", "2500", { drainTimeoutMs: 2500 }],
    ["HIBERNAUT_DRAIN_TIMEOUT_MS", "5m", { drainTimeoutMs: 300_000 }],
    ["HIBERNAUT_IMAGE_KEEP_HOURS", "48", { imageKeepH: 48 }],
    ["HIBERNAUT_LAYER_SIZE_MB", "2048", { layerSizeMb: 2048 }],
    ["HIBERNAUT_LOG_MAX_MB", "32", { logMaxMb: 32 }],
  ])("the former name %s=%s keeps working, and a plain number counts its unit", (name, value, expected) => {
    const environment = { ...NOWHERE, [name]: value };
    expect(readSettings(environment)).toMatchObject(expected);
    expect(unknownSettings(environment)).toEqual([]);
  });

  test("a slow host gets more time, up to what a limit accepts, except where its owner set the limit", () => {
    const slow = { ...NOWHERE, HIBERNAUT_SLOW_FACTOR: "20" };
    expect(readSettings(slow)).toMatchObject({
      kvmProofTimeoutMs: 160_000,
      flushTimeoutMs: 200_000,
      bootTimeoutMs: 600_000, // 20 minutes would be more than it accepts
      drainTimeoutMs: readSettings(NOWHERE).drainTimeoutMs, // not about how fast the host is
    });
    const own = { ...slow, HIBERNAUT_KVM_PROOF_TIMEOUT: "10s", HIBERNAUT_BOOT_TIMEOUT_MS: "5000" };
    expect(readSettings(own)).toMatchObject({ kvmProofTimeoutMs: 10_000, bootTimeoutMs: 5000 });
    expect(readSettings({ ...NOWHERE, HIBERNAUT_SLOW_FACTOR: "" })).toEqual(readSettings(NOWHERE));
  });

  test("the name of a setting goes before its former name, and the environment before the file", async () => {
    const folder = await tempFolder("settings");
    const environment = { XDG_CONFIG_HOME: folder, HIBERNAUT_BOOT_TIMEOUT_MS: "5000" };
    await mkdir(configFolder(environment));
    await writeFile(join(configFolder(environment), "settings.json"), JSON.stringify({ HIBERNAUT_BOOT_TIMEOUT: "9s" }));
    expect(readSettings(environment)).toMatchObject({ bootTimeoutMs: 5000 });
    expect(readSettings({ ...environment, HIBERNAUT_BOOT_TIMEOUT: "7s" })).toMatchObject({ bootTimeoutMs: 7000 });
  });

  test("every default is one that the setting accepts", () => {
    const groups = Object.values(SETTING_GROUPS).flatMap((group): TSchema[] => Object.values(group));
    for (const schema of groups) {
      const { env, defaultText, fallback } = infoOf(schema);
      if (fallback !== undefined || defaultText === "none") continue;
      const read = readSettings({ ...NOWHERE, [env]: defaultText });
      expect(read, env).toEqual(readSettings(NOWHERE));
    }
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

  test("is not one that the repository itself reads or sets", async () => {
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
