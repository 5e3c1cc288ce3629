/** Where apps answer, as the platform knows it from the real ports of its proxy. */
import { Registry } from "prom-client";
import { expect, onTestFinished, test } from "vitest";
import { AppAddresses } from "../../src/proxy/addresses.ts";
import { ConnectedProxies } from "../../src/proxy/connected-proxies.ts";
import { startCoordinator } from "../../src/proxy/start-coordinator.ts";
import { readSettings } from "../../src/settings.ts";
import { budgetOf } from "../helpers/connections.ts";
import { newWorld, startPlatform } from "../helpers/fake-world.ts";

async function addressesWith(environment: Record<string, string>) {
  const world = await newWorld();
  const platform = await startPlatform(world);
  const settings = readSettings({
    HIBERNAUT_DATA_DIR: world.folder,
    HIBERNAUT_PROXY_LISTEN: "127.0.0.1:0",
    HIBERNAUT_LOG_LEVEL: "silent",
    XDG_CONFIG_HOME: world.folder,
    ...environment,
  });
  const addresses = new AppAddresses(platform.hostnames, settings.proxySuffixes);
  const started = await startCoordinator({
    resources: platform,
    checks: { isHealthy: () => true, subscribe: () => () => {} },
    proxies: new ConnectedProxies(),
    addresses,
    gateway: undefined,
    challenges: { all: () => ({}), certificates: () => ({}), subscribe: () => () => {} },
    connectionsSurvive: false,
    onTraffic() {},
    settings,
    registry: new Registry(),
    connections: budgetOf(),
    log: { warn: () => {} },
  });
  onTestFinished(async () => {
    await started.close();
    await platform.close();
    await world.dispose();
  });
  platform.apps.create("shop");
  return { addresses, platform };
}

test("addresses have the port that was bound, and hostnames that lead elsewhere are left out", async () => {
  const { addresses, platform } = await addressesWith({});
  platform.hostnames.add("shop", "www.example.com");
  const { port } = new URL(addresses.url() ?? "");
  expect(Number(port)).toBeGreaterThan(0);
  expect(addresses.urlsOf("shop")).toEqual([`http://shop.localhost:${port}/`]);
});

test("no addresses are known of proxies in processes of their own", async () => {
  const { addresses } = await addressesWith({ HIBERNAUT_PROXY: "outside" });
  expect(addresses.url()).toBeUndefined();
  expect(addresses.urlsOf("shop")).toEqual([]);
});
