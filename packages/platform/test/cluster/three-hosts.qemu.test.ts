import { expect, it } from "vitest";
import { leaveCluster } from "../../src/membership.ts";
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
