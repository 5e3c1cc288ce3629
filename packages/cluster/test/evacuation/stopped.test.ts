/** A platform is stopped for longer than its grace, and its guests run on: no other host runs their machines as well. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { lostHostsOf, ownerIn, runOn } from "../../../platform/test/helpers/cluster-machines.ts";
import { type ClusterWorld, hostChange } from "../../../platform/test/helpers/cluster-world.ts";
import { openDirectory, readHome } from "../../src/home.ts";
import { initCluster } from "../../src/join.ts";
import { KEYS, type MemberRecord } from "../../src/keys.ts";
import { put } from "../../src/stored.ts";
import { asleep, create, endGuests, fakeHosts, RECREATE } from "../fake-hosts.ts";
import { bareHost, openHost, sharedPlace } from "../place.ts";

/** What a does about host b, which goes away, after a number of milliseconds. */
async function goAway({ host, directory }: ClusterWorld) {
  const a = host("a");
  let now = 0;
  const watch = lostHostsOf(a, () => now);
  watch.start();
  onTestFinished(() => watch.close());
  const tell = async (up: boolean) =>
    a.cluster.view.reached((await directory.transact([], [hostChange("b", up)])) ?? Number.NaN);
  await tell(false);
  const look = (at: number) => {
    now = at;
    return watch.look();
  };
  await look(0);
  return { look, tell };
}

test("of a stopped platform, a machine that slept is recreated, and one that runs on is not started by anyone else", async () => {
  const { world, b } = await fakeHosts("a", "b");
  const { id: sleeping } = await asleep(b, RECREATE);
  const awake = await create(b, "two", RECREATE);
  await b.stop();
  const { look } = await goAway(world);
  await look(76_000);
  expect(await ownerIn(world, sleeping)).toMatchObject({ host: "a", epoch: 2 });
  await look(24 * 60 * 60_000);
  expect(await ownerIn(world, awake)).toMatchObject({ host: "b", epoch: 1 });
  expect(b.world.host.of(awake)).toHaveLength(1);
});

test("a platform that is stopped while etcd is away ends these guests, because others will recreate them", async () => {
  const { world, b } = await fakeHosts("a", "b");
  const { id } = await runOn(b, RECREATE);
  b.cut(true);
  await b.stop();
  expect(b.world.host.of(id)).toEqual([]);
  const { look } = await goAway(world);
  await look(76_000);
  expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 2 });
});

test("a platform that starts is not taken for a stopped one any more", async () => {
  const settings = await bareHost();
  const directory = await sharedPlace();
  await initCluster({ settings, name: "a", peer: "127.0.0.1", directory });
  const secretsKey = readFileSync(join(settings.dataDir, "secrets.key"));
  const file = await openDirectory(await readHome(settings.dataDir), { secretsKey });
  onTestFinished(() => file.close());
  const key = `${KEYS.members}a`;
  const member = async () => JSON.parse((await file.get(key))?.value ?? "{}") as MemberRecord;
  const stoppedAt = new Date().toISOString();
  await file.transact([], [put(key, { ...(await member()), stoppedAt, left: ["m1"] })]);
  await openHost(settings);
  expect(await member()).not.toHaveProperty("stoppedAt");
  expect(await member()).not.toHaveProperty("left");
  expect(await member()).toMatchObject({ graceMs: 60_000 });
});

test("a lost host that was back for a moment has its whole grace again", async () => {
  const { world, b } = await fakeHosts("a", "b");
  const { id } = await runOn(b, RECREATE);
  const { look, tell } = await goAway(world);
  await look(70_000);
  // Between two looks.
  await tell(true);
  await tell(false);
  await look(76_000);
  expect(await ownerIn(world, id)).toMatchObject({ host: "b", epoch: 1 });
  endGuests(b);
  await look(152_000);
  expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 2 });
});
