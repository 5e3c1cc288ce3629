/** What machines are kept from in a cluster: how a host knows where it is. The rules are tried in `network/control-plane`. */
import { expect, it, onTestFinished, vi } from "vitest";
import type { ClusterHost } from "../src/cluster.ts";
import { ControlPlane, controlOf, reachableAt } from "../src/control-plane.ts";
import type { HostRecord } from "../src/keys.ts";
import { joinHost, oneHost, openHost } from "./place.ts";

const address = (of: string, { internal = false, family = "IPv4" } = {}) =>
  ({ address: of, internal, family }) as never;
const INTERFACES = {
  lo: [address("127.0.0.1", { internal: true })],
  eth1: [address("203.0.113.7")],
  eth0: [address("10.0.0.1"), address("fe80::1", { family: "IPv6" })],
  hib3fa29c: [address("10.213.0.1")],
};

it("a host tells where its ports are reached from other computers, and nothing that it keeps to itself", () => {
  const listens = [
    { host: "0.0.0.0", port: 4290 },
    { host: "127.0.0.1", port: 4280 },
    { host: "10.0.0.1", port: 9090 },
    { host: "0.0.0.0", port: 0 },
    undefined,
  ];
  expect(reachableAt(listens, INTERFACES)).toEqual(["10.0.0.1:4290", "203.0.113.7:4290", "10.0.0.1:9090"]);
});

it("a host that is away is remembered, and one that was removed is not", () => {
  const etcd = ["https://e1:2379"];
  const known = new Map<string, readonly string[]>();
  const member = { fingerprint: "f", joinedAt: "" };
  const up = { peer: "10.0.0.2:4290", control: ["10.0.0.2:4280", "no address"] } as HostRecord;
  const hosts = (b: ClusterHost["up"]): ClusterHost[] => [{ name: "b", member, up: b }];
  const members = ["e1:2379", "e1:2380"];
  const found = (of: ClusterHost[]) => controlOf({ etcd }, of, known).map(({ host, port }) => `${host}:${port}`);
  expect(found(hosts(up))).toEqual([...members, "10.0.0.2:4290", "10.0.0.2:4280"]);
  expect(found(hosts(undefined))).toEqual([...members, "10.0.0.2:4290", "10.0.0.2:4280"]);
  expect(found([])).toEqual(members);
});

it("a host hears at once where a new one is", async () => {
  const { cluster, token } = await oneHost();
  const told: string[][] = [];
  onTestFinished(
    cluster.controlPlane.follow((addresses) => told.push(addresses.map((each) => `${each.address}:${each.port}`))),
  );
  const b = await openHost(await joinHost(await token(), "b"));
  await vi.waitFor(() => expect(told.at(-1)).toContain(b.view.host("b")?.up?.peer));
  expect(told.at(-1)).toContain(cluster.view.host("a")?.up?.peer);
});

it("a name that cannot be looked up is said, and does not hide the others", async () => {
  const troubles: string[] = [];
  const plane = new ControlPlane({
    place: { etcd: ["https://e1.invalid:2379", "https://10.0.0.1:2379"] },
    view: { hosts: () => [], subscribe: () => () => {} },
    onTrouble: (_error, message) => troubles.push(message),
  });
  expect(await plane.addresses()).toEqual([
    { address: "10.0.0.1", port: 2379 },
    { address: "10.0.0.1", port: 2380 },
  ]);
  expect(troubles).toEqual([expect.stringContaining("the address of e1.invalid is not known")]);
});
