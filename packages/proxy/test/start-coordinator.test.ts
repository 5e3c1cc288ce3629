/** Where apps answer, as the platform knows it from the real ports of its proxy. */
import { once } from "node:events";
import { createServer } from "node:net";
import { readSettings } from "@hibernaut/settings";
import { Registry } from "prom-client";
import { expect, onTestFinished, test, vi } from "vitest";
import { freePort } from "../../../scripts/lib/free-port.mjs";
import { budgetOf } from "../../platform/test/helpers/connections.ts";
import { newWorld, SMALL, startPlatform } from "../../platform/test/helpers/fake-world.ts";
import { AppAddresses } from "../src/addresses.ts";
import { ConnectedProxies } from "../src/connected-proxies.ts";
import { startCoordinator } from "../src/start-coordinator.ts";

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
  let taken: readonly number[] = [];
  const started = await startCoordinator({
    resources: platform,
    checks: { isHealthy: () => true, subscribe: () => () => {} },
    proxies: new ConnectedProxies(),
    addresses,
    gateway: undefined,
    lead: async () => {},
    challenges: { all: () => ({}), certificates: () => ({}), subscribe: () => () => {} },
    connectionsSurvive: false,
    onTraffic() {},
    onTaken: (ports) => void (taken = ports),
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
  return { addresses, platform, started, taken: () => taken };
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

test("the platform knows which ports of TCP services the proxy could not open, and why", async () => {
  const { platform, started, addresses, taken: takes } = await addressesWith({});
  const [taken, free] = [await freePort(), await freePort()];
  const other = createServer().listen(taken, "127.0.0.1");
  onTestFinished(() => void other.close());
  await once(other, "listening");
  const service = (port: number) => ({ ...SMALL, services: [{ internal_port: 5432, ports: [{ port }] }] });
  platform.apps.create("mail");
  const { record } = await platform.machines.create("shop", { config: service(taken), skipLaunch: true });
  await platform.machines.create("mail", { config: service(free), skipLaunch: true });
  await vi.waitFor(() =>
    expect(started.closedPorts("shop")).toEqual([{ port: taken, reason: expect.stringContaining("EADDRINUSE") }]),
  );
  expect(started.closedPorts("mail")).toEqual([]);
  // Nor does it know another program's port for one at which clients come.
  const http = Number(new URL(addresses.url() ?? "").port);
  await vi.waitFor(() => expect(takes()).toEqual([http, free]));
  // An update is a new claim, which is tried at once.
  other.close();
  await once(other, "close");
  await platform.machines.update("shop", record.id, { ...service(taken), env: { NEW: "1" } });
  await vi.waitFor(() => expect(started.closedPorts("shop")).toEqual([]));
  await vi.waitFor(() => expect(takes()).toEqual([http, taken, free]));
});
