import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { configFolder, readSettings } from "../src/settings.ts";
import { tempFolder } from "./helpers/temp.ts";

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
    ["HIBERNAUT_IDLE_CHECK_INTERVAL", "0", "a whole number from 1 to 3600"],
    ["HIBERNAUT_SUSPEND_MAX_MEMORY_MB", "2e3", "a whole number"],
    ["HIBERNAUT_REGION", "Not a region", "1 to 32 of"],
  ])("%s=%s names itself and says what it would accept", (name, value, wanted) => {
    const read = () => readSettings({ ...NOWHERE, [name]: value });
    expect(read).toThrowError(expect.objectContaining({ code: "invalid_argument", details: { setting: name } }));
    expect(read).toThrowError(new RegExp(`^${name} must be .*${wanted}`));
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
