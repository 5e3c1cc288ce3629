// skopeo enforces rules about trust (containers-policy.json), so where there are rules, it downloads images itself.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { openImages } from "../src/open.ts";
import { registriesHaveRules } from "../src/trust.ts";
import { makeLayout, readRootfs } from "./fixtures.ts";
import { LOGIN, startRegistry } from "./real-registry.ts";

const ANYTHING = [{ type: "insecureAcceptAnything" }];
const NOTHING = [{ type: "reject" }];

let folder: string;

beforeEach(async () => {
  folder = await tempFolder("images");
  vi.stubEnv("HOME", folder);
});
afterEach(() => void vi.unstubAllEnvs());

async function policy(content: unknown): Promise<string> {
  const file = join(folder, ".config/containers/policy.json");
  await mkdir(join(file, ".."), { recursive: true });
  await writeFile(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

test.each([
  [{ default: ANYTHING }, false],
  [{ default: ANYTHING, transports: { docker: { "ghcr.io": ANYTHING }, "docker-daemon": { "": ANYTHING } } }, false],
  [{ default: NOTHING }, true],
  [{ default: ANYTHING, transports: { docker: { "ghcr.io": [{ type: "signedBy" }] } } }, true],
  [{ default: [] }, true],
  [{}, true],
  ["no json", true],
])("%j has rules: %s", async (content, expected) => {
  expect(await registriesHaveRules([join(folder, "none"), await policy(content)])).toBe(expected);
});

test("there are no rules without a file", async () => {
  expect(await registriesHaveRules([join(folder, "none")])).toBe(false);
});

test("skopeo enforces the rules, and uses the platform's login", { timeout: 30_000 }, async () => {
  const registry = await startRegistry(folder, { login: true });
  onTestFinished(() => registry.stop());
  await registry.push(await makeLayout(folder, "app"), "app:1");
  const { images, logins } = await openImages({ dataDir: join(folder, "data") });
  await logins.put(registry.host, LOGIN);
  await policy({ default: NOTHING });
  await expect(images.ensure(`${registry.host}/app:1`)).rejects.toThrow("rejected by policy");
  await policy({ default: NOTHING, transports: { docker: { [registry.host]: ANYTHING } } });
  const steps: string[] = [];
  const image = await images.ensure(`${registry.host}/app:1`, { onProgress: ({ step }) => steps.push(step) });
  expect(await readRootfs(image.rootfs, "app/content")).toBe("app");
  expect(steps).toEqual(["resolve", "copy", "unpack", "pack"]);
});
