/** What machines find their neighbours by, and what a machine costs that asks without end. */
import type { AppRecord } from "@hibernaut/domain/machine";
import { expect, test } from "vitest";
import { NetworkNames } from "../../dns/src/neighbours.ts";
import { machineRecord } from "../../store/test/helpers.ts";

const app = (name: string, aliases: string[], network = "shop"): AppRecord => ({
  ...{ name, createdAt: "" },
  network: { name: network, address: `198.18.0.${name.length}`, aliases },
});

function world() {
  const apps = [
    app("web", ["front"]),
    app("cache", ["web"]),
    app("queue-1", ["worker"]),
    app("elsewhere", [], "other"),
  ];
  const services = [{ internal_port: 80 }];
  const [served, bare] = [services, []].map((some) => machineRecord({ config: { image: "i", services: some } }));
  let [reads, now] = [0, 0];
  const names = new NetworkNames({
    appAt: (address) => ({ "10.0.0.1": "web", "10.0.0.2": "alone" })[address],
    store: {
      apps: {
        get: (name) => apps.find((one) => one.name === name),
        inNetwork(network) {
          reads += 1;
          return apps.filter((one) => one.network?.name === network);
        },
      },
      machines: { list: (of) => (of === "queue-1" ? [bare] : of === "web" ? [served] : []) as never },
    },
    now: () => now,
  });
  return { apps, names, reads: () => reads, later: (ms: number) => (now += ms) };
}

test("names and aliases lead to the app's own address, an app's own name first, and only within the network", () => {
  const { names } = world();
  const found = names.of("10.0.0.1");
  expect(found?.find("front")).toEqual({ app: "web", address: "198.18.0.3" });
  expect(found?.find("web")).toEqual({ app: "web", address: "198.18.0.3" });
  expect(found?.find("cache"), "its machines may be on other hosts").toEqual({ app: "cache", address: "198.18.0.5" });
  expect(found?.find("worker"), "nothing of it could be woken").toEqual({ app: "queue-1" });
  expect(found?.find("elsewhere")).toBeUndefined();
  expect(names.of("10.0.0.2")).toBeUndefined();
  expect(names.of("10.9.9.9")).toBeUndefined();
});

test("ten thousand questions read the network once, and a new name is found soon", () => {
  const { apps, names, reads, later } = world();
  for (let asked = 0; asked < 10_000; asked += 1) names.of("10.0.0.1")?.find(`name-${asked}`);
  expect(reads()).toBe(1);
  apps.push(app("new-one", ["fresh"]));
  later(1000);
  expect(names.of("10.0.0.1")?.find("fresh")).toMatchObject({ app: "new-one" });
});
