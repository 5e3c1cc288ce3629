/**
 * Files in the shapes that app files have in public repositories, each with what it must mean and
 * exactly what must be warned of. The texts are our own.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { MachineConfig } from "@hibernaut/domain/config";
import { requireSupported } from "@hibernaut/domain/config-rules";
import { Value } from "typebox/value";
import { describe, expect, test } from "vitest";
import { machineConfigs, releaseConfig } from "../../src/appfile/machine-configs.ts";
import { readAppFile } from "../../src/appfile/read.ts";
import { FORMS } from "./expected/forms.ts";
import { SERVICES } from "./expected/services.ts";
import type { Expected } from "./expected/types.ts";
import { WARNED } from "./expected/warned.ts";
import { WEB } from "./expected/web.ts";

const FOLDER = join(import.meta.dirname, "files");
const EXPECTED: Record<string, Expected> = { ...WEB, ...SERVICES, ...FORMS, ...WARNED };

test("every file has its expectation, and there are a hundred", () => {
  expect(Object.keys(EXPECTED).sort()).toEqual(readdirSync(FOLDER).sort());
  expect(Object.keys(EXPECTED).length).toBeGreaterThanOrEqual(100);
});

describe.each(Object.entries(EXPECTED))("%s", (name, { app, means, release, warns }) => {
  const { file, findings } = readAppFile(readFileSync(join(FOLDER, name), "utf8"));

  test("has exactly these warnings", () => {
    expect(findings.filter(({ severity }) => severity === "error")).toEqual([]);
    expect(findings.map(({ path }) => path)).toEqual(warns);
  });

  test("means these machines, which the platform takes", () => {
    if (file === undefined) throw new Error("the file was refused");
    if (app !== undefined) expect(file.app).toBe(app);
    const image = file.image ?? "app:latest";
    if (release !== undefined) expect(releaseConfig(file, { image })).toMatchObject(release);
    const groups = machineConfigs(file, { image });
    expect([...groups.keys()]).toEqual(Object.keys(means));
    for (const [group, { config }] of groups) {
      expect(config).toMatchObject(means[group] ?? {});
      expect([...Value.Errors(MachineConfig, config)]).toEqual([]);
      // Volumes come with the platform's own schema for them.
      const { mounts: _, ...others } = config;
      expect(() => requireSupported(others as MachineConfig)).not.toThrow();
    }
  });
});
