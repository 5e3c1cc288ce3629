/** Releases: what a client that deploys records, and what becomes of one that is gone. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { newWorld, type World } from "../../platform/test/helpers/fake-world.ts";
import { Releases } from "../src/resources/releases.ts";

let world: World;
let nowMs: number;
let releases: Releases;

beforeEach(async () => {
  world = await newWorld();
  world.store.apps.insert({ name: "shop", createdAt: new Date().toISOString() });
  nowMs = 0;
  releases = new Releases(world, () => nowMs);
});
afterEach(() => world.dispose());

const statuses = () => releases.list("shop", 10).map(({ version, status }) => `${version} ${status}`);

test("a client that keeps reporting may take as long as it needs, and says how it ended", async () => {
  const { version } = await releases.begin("shop", "shop:1", "");
  for (; nowMs < 600_000; nowMs += 15_000) releases.renew("shop", version);
  expect(statuses()).toEqual(["1 pending"]);
  expect(releases.end("shop", version, "complete", "")).toMatchObject({ status: "complete" });
  nowMs += 600_000;
  expect(statuses()).toEqual(["1 complete"]);
});

test("a client that is gone leaves its release abandoned; the next one is not affected", async () => {
  await releases.begin("shop", "shop:1", "");
  nowMs += 50_000;
  await releases.begin("shop", "shop:2", "");
  nowMs += 15_000;
  expect(releases.list("shop", 10)).toMatchObject([
    { version: 2, status: "pending" },
    { version: 1, status: "abandoned", description: "The client that deployed it stopped reporting." },
  ]);
});

test("a restart of the platform gives clients their time again", async () => {
  const { version } = await releases.begin("shop", "shop:1", "");
  nowMs = 1_000_000;
  releases = new Releases(world, () => nowMs);
  expect(statuses()).toEqual(["1 pending"]);
  nowMs += 30_000;
  releases.renew("shop", version);
  nowMs += 45_000;
  expect(statuses()).toEqual(["1 pending"]);
  nowMs += 30_000;
  expect(statuses()).toEqual(["1 abandoned"]);
});

test("a client that was only cut off for a while still says how it ended", async () => {
  const { version } = await releases.begin("shop", "shop:1", "");
  nowMs += 120_000;
  expect(statuses()).toEqual(["1 abandoned"]);
  releases.end("shop", version, "complete", "");
  expect(statuses()).toEqual(["1 complete"]);
  expect(() => releases.renew("shop", 7)).toThrow("App shop has no release 7");
});
