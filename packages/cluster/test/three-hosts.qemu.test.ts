/**
 * @module-tag again
 */
import { expect, it, vi } from "vitest";
import { leaveCluster } from "../src/join.ts";
import { startHosts } from "./hosts.ts";

it("three hosts join, one leaves, and one that is killed is shown away until it returns", async () => {
  await using hosts = await startHosts({ images: false });
  const states = async () =>
    Object.fromEntries((await hosts.host("a").cluster()).hosts.map(({ name, state }) => [name, state]));
  expect(await states()).toEqual({ a: "up", b: "up", c: "up" });
  expect(await hosts.host("b").cluster()).toMatchObject({
    host: "b",
    lease: "live",
    region: "local",
    directory_age_s: 0,
  });

  await hosts.host("c").served.stop();
  // A platform that was stopped says so itself: nobody waits for its lease.
  await hosts.settled("a", "b");
  await leaveCluster({ settings: hosts.host("c").settings });
  expect(await states()).toEqual({ a: "up", b: "up" });
  await hosts.host("c").served.start();
  await expect(hosts.host("c").cluster()).rejects.toThrow("This platform is not in a cluster");

  await hosts.host("b").lose();
  await hosts.settled("a");
  expect(await states()).toEqual({ a: "up", b: "away" });
  await hosts.host("b").served.start();
  await hosts.settled("a", "b");
});

it("a host whose etcd is away says so, starts without it, and is back when etcd is", async () => {
  await using hosts = await startHosts({ count: 2, images: false, env: { HIBERNAUT_CLUSTER_GRACE: "2s" } });
  const [member] = hosts.etcd.members;
  await member?.kill();
  const health = async (name: string) => (await hosts.host(name).client.getHealth()).cluster;
  await vi.waitFor(async () => expect(await health("a")).toMatchObject({ host: "a", lease: "lost" }), {
    timeout: 60_000,
  });
  expect((await health("a"))?.directory_age_s).toBeGreaterThan(0);

  await hosts.host("b").served.stop();
  await hosts.host("b").served.start();
  expect(await health("b")).toMatchObject({ host: "b", lease: "lost" });

  member?.start();
  // What etcd had on its disk comes back with it, the leases too: only a renewal shows that a host has noticed.
  for (const host of ["a", "b"])
    await vi.waitFor(async () => expect(await health(host)).toEqual({ host, lease: "live", directory_age_s: 0 }), {
      timeout: 60_000,
    });
  await hosts.settled("a", "b");
});
