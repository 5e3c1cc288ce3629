/** A platform is stopped for longer than its grace, and its guests run on: no other host runs their machines as well. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, onTestFinished, test } from "vitest";
import { lostHostsOf, ownerIn, putToSleep, runOn } from "../../../platform/test/helpers/cluster-machines.ts";
import {
  type ClusterWorld,
  hostChange,
  newClusterWorld,
  type TestHost,
} from "../../../platform/test/helpers/cluster-world.ts";
import { SMALL } from "../../../platform/test/helpers/fake-world.ts";
import { openDirectory, readHome } from "../../src/home.ts";
import { initCluster } from "../../src/join.ts";
import { KEYS, type MemberRecord } from "../../src/keys.ts";
import { bareHost, openHost, sharedPlace } from "../place.ts";

const RECREATE = { ...SMALL, on_host_loss: "recreate" } as const;
let world: ClusterWorld | undefined;

afterEach(async () => {
  await world?.dispose();
  world = undefined;
});

async function hosts(): Promise<{ a: TestHost; b: TestHost; world: ClusterWorld }> {
  world = await newClusterWorld(["a", "b"]);
  return { a: world.host("a"), b: world.host("b"), world };
}

/** What a does about host b, which goes away, after a number of milliseconds. */
async function goAway({ a }: { a: TestHost }, { directory }: ClusterWorld) {
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

test("a machine that others may recreate runs on while its platform is stopped, and nobody else starts it", async () => {
  const { a, b, world: all } = await hosts();
  const { id } = await runOn(b, RECREATE);
  await b.stop();
  expect(b.world.host.of(id)).toHaveLength(1);
  const { look } = await goAway({ a }, all);
  await look(24 * 60 * 60_000);
  expect(await ownerIn(all, id)).toMatchObject({ host: "b", epoch: 1 });
  expect(b.world.host.of(id)).toHaveLength(1);
});

test("a machine that sleeps when its platform is stopped is recreated as if the host was lost", async () => {
  const { a, b, world: all } = await hosts();
  const { id } = await runOn(b, RECREATE);
  await putToSleep(b, id);
  await b.stop();
  const { look } = await goAway({ a }, all);
  await look(76_000);
  expect(await ownerIn(all, id)).toMatchObject({ host: "a", epoch: 2 });
});

test("of a stopped platform, a machine that slept is recreated, and one that ran is not", async () => {
  const { a, b, world: all } = await hosts();
  const { id: sleeping } = await runOn(b, RECREATE);
  await putToSleep(b, sleeping);
  const { record } = await b.platform.machines.create("shop", { name: "two", config: RECREATE });
  await b.platform.machines.wait("shop", record.id, ["running"], { timeoutMs: 5000 });
  await b.stop();
  const { look } = await goAway({ a }, all);
  await look(76_000);
  expect(await ownerIn(all, sleeping)).toMatchObject({ host: "a", epoch: 2 });
  await look(24 * 60 * 60_000);
  expect(await ownerIn(all, record.id)).toMatchObject({ host: "b", epoch: 1 });
  expect(b.world.host.of(record.id)).toHaveLength(1);
});

test("a platform that is stopped while etcd is away ends these guests, because others will recreate them", async () => {
  const { a, b, world: all } = await hosts();
  const { id } = await runOn(b, RECREATE);
  b.cut(true);
  await b.stop();
  expect(b.world.host.of(id)).toEqual([]);
  const { look } = await goAway({ a }, all);
  await look(76_000);
  expect(await ownerIn(all, id)).toMatchObject({ host: "a", epoch: 2 });
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
  await file.transact([], [{ key, value: JSON.stringify({ ...(await member()), stoppedAt, left: ["m1"] }) }]);
  await openHost(settings);
  expect(await member()).not.toHaveProperty("stoppedAt");
  expect(await member()).not.toHaveProperty("left");
  expect(await member()).toMatchObject({ graceMs: 60_000 });
});

test("a lost host that was back for a moment has its whole grace again", async () => {
  const { a, b, world: all } = await hosts();
  const { id } = await runOn(b, RECREATE);
  const { look, tell } = await goAway({ a }, all);
  await look(70_000);
  // Between two looks.
  await tell(true);
  await tell(false);
  await look(76_000);
  expect(await ownerIn(all, id)).toMatchObject({ host: "b", epoch: 1 });
  for (const { ref } of b.world.host.of(id)) b.world.host.end(ref);
  await look(152_000);
  expect(await ownerIn(all, id)).toMatchObject({ host: "a", epoch: 2 });
});
