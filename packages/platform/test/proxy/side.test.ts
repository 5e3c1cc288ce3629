/** What the proxy's side of the platform says of where apps answer, with its real ports. */
import { Registry } from "prom-client";
import { expect, onTestFinished, test } from "vitest";
import { startProxySide } from "../../src/proxy/start.ts";
import { readSettings } from "../../src/settings.ts";
import { newWorld, startPlatform } from "../helpers/fake-world.ts";

async function side(environment: Record<string, string>) {
  const world = await newWorld();
  const platform = await startPlatform(world);
  const settings = readSettings({
    HIBERNAUT_DATA_DIR: world.folder,
    HIBERNAUT_PROXY_LISTEN: "127.0.0.1:0",
    HIBERNAUT_LOG_LEVEL: "silent",
    XDG_CONFIG_HOME: world.folder,
    ...environment,
  });
  const started = await startProxySide({
    resources: platform,
    settings,
    registry: new Registry(),
    log: { warn: () => {}, info: () => {} } as never,
    connectionsSurvive: false,
    checks: { isHealthy: () => true, onChange: () => () => {} },
  });
  onTestFinished(async () => {
    await started.close();
    await platform.close();
    await world.dispose();
  });
  platform.apps.create("shop");
  return { started, platform, folder: world.folder };
}

test("the port is the one that was bound, and names that lead elsewhere are left out", async () => {
  const { started, platform } = await side({});
  platform.hostnames.add("shop", "www.example.com");
  const { port } = new URL(started.url ?? "");
  expect(Number(port)).toBeGreaterThan(0);
  expect(started.urlsOf("shop")).toEqual([`http://shop.localhost:${port}/`]);
});

test("nothing is said of proxies in processes of their own", async () => {
  const { started } = await side({ HIBERNAUT_PROXY: "outside" });
  expect(started.url).toBeUndefined();
  expect(started.urlsOf("shop")).toEqual([]);
});
