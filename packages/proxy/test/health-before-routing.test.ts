/** A machine with checks is announced to the proxies as healthy only after its checks have passed. */
import { type AddressInfo, createServer } from "node:net";
import { CheckResults, CheckRunner } from "@hibernaut/checks";
import { expect, onTestFinished, test } from "vitest";
import { newWorld, SMALL, startPlatform } from "../../platform/test/helpers/fake-world.ts";
import { ConnectedProxies } from "../src/connected-proxies.ts";
import type { TableMachine } from "../src/messages.ts";
import { ProxyCoordinator } from "../src/proxy-coordinator.ts";

/** A coordinator that subscribed before the checks did, the opposite of server.ts, and what it tells a proxy. */
async function routingSubscribedFirst() {
  const world = await newWorld();
  const platform = await startPlatform(world);
  platform.apps.create("shop");
  const results = new CheckResults();
  const told: TableMachine[] = [];
  const coordinator = new ProxyCoordinator({
    ...platform,
    proxies: new ConnectedProxies(),
    suffixes: [],
    idleCheckIntervalMs: 3_600_000,
    connectionsSurvive: false,
    isHealthy: (id) => results.isHealthy(id),
    log: { warn: () => {} },
  });
  coordinator.connect((message) => {
    if (message.kind === "machine") told.push(message.machine);
  });
  const checks = new CheckRunner(platform.machines, results);
  checks.subscribe((id) => coordinator.healthChanged(id));
  onTestFinished(async () => {
    await checks.close();
    await coordinator.close();
    await platform.close();
    await world.dispose();
  });
  const machine = async (port: number) => {
    const config = { ...SMALL, checks: { web: { type: "tcp" as const, port, interval: "100ms" } } };
    const { record } = await platform.machines.create("shop", { config });
    await platform.machines.wait("shop", record.id, ["running"], { timeoutMs: 5000 });
    return record.id;
  };
  return { told, machine, platform };
}

/** A port on all addresses of the host, which counts the probes that reach it. */
async function openPort(): Promise<number> {
  const server = createServer((socket) => socket.on("error", () => {}).destroy()).listen(0, "0.0.0.0");
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  return (server.address() as AddressInfo).port;
}

test("after a cold start, not before the first check, although routing subscribed before health", async () => {
  const { told, machine } = await routingSubscribedFirst();
  const id = await machine(await openPort());
  const whileRunning = () =>
    told.filter((row) => row.id === id && row.state === "running").map(({ healthy }) => healthy);
  // Told of the start at once, and of the check when it has passed.
  expect(whileRunning()[0]).toBe(false);
  await expect.poll(() => whileRunning().at(-1)).toBe(true);
  expect(whileRunning()).toEqual([false, true]);
});

test("after a resume, at once: the machine is as healthy as it was", async () => {
  const { told, machine, platform } = await routingSubscribedFirst();
  const id = await machine(1);
  platform.machines.suspend("shop", id);
  await platform.machines.wait("shop", id, ["suspended"], { timeoutMs: 5000 });
  told.length = 0;
  platform.machines.start("shop", id);
  await platform.machines.wait("shop", id, ["running"], { timeoutMs: 5000 });
  expect(told.find(({ state }) => state === "running")?.healthy).toBe(true);
});
