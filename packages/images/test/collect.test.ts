// A collection at the worst moment: an image that is about to be used stays, and one being deleted is not handed out.
import { existsSync } from "node:fs";
import { readdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay, setImmediate as turn } from "node:timers/promises";
import { beforeEach, expect, test } from "vitest";
import { longOr } from "../../platform/test/helpers/long.ts";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import type { ImageStore } from "../src/contract.ts";
import { LayerCache } from "../src/layers.ts";
import { openImageStore } from "../src/open.ts";
import { UseCounter } from "../src/use-counter.ts";
import { makeLayout } from "./fixtures.ts";
import { layoutOf } from "./layers.ts";

let folder: string;
let store: ImageStore;

beforeEach(async () => {
  folder = await tempFolder("images");
  store = await openImageStore({ dataDir: join(folder, "data") });
});

test("a held image stays until it is released", async () => {
  const ref = `oci:${await makeLayout(folder, "app")}`;
  const { digest } = await store.ensure(ref);
  {
    using image = await store.hold(ref);
    expect(await store.collect(() => new Set())).toEqual([]);
    expect(existsSync(image.rootfs)).toBe(true);
  }
  expect(await store.collect(() => new Set())).toEqual([digest]);
});

test("a machine that is stored during a collection keeps its image", async () => {
  const { digest } = await store.ensure(`oci:${await makeLayout(folder, "app")}`);
  const machines = new Set<string>();
  let looks = 0;
  const collected = await store.collect(() => {
    if (++looks === 1) queueMicrotask(() => machines.add(digest));
    return new Set(machines);
  });
  expect(looks).toBe(2);
  expect(collected).toEqual([]);
  expect(await store.get(digest)).toBeDefined();
});

/** A collection takes some 20 ms. */
const STEP_MS = longOr(2, 10);

test("every machine has its image, no matter when a collection runs", { timeout: 60_000 }, async () => {
  const ref = `oci:${await makeLayout(folder, "app")}`;
  await store.ensure(ref);
  for (let lateMs = 0; lateMs < 60; lateMs += STEP_MS) {
    const machines = new Set<string>();
    // What the manager does: hold, store the machine, release.
    const create = async () => {
      using image = await store.hold(ref);
      await turn();
      machines.add(image.digest);
      return image;
    };
    const collect = async () => {
      await delay(lateMs);
      await store.collect(() => new Set(machines));
    };
    const [image] = await Promise.all([create(), collect(), create()]);
    expect(existsSync(image.rootfs), `a collection after ${lateMs} ms`).toBe(true);
    expect(await store.get(image.digest)).toBeDefined();
  }
});

test("a use of something that is being removed waits until it has been removed", async () => {
  const uses = new UseCounter();
  const gone = Promise.withResolvers<void>();
  const removed = uses.removeUnused("app", () => gone.promise);
  let taken = false;
  const take = uses.use("app").then((release) => {
    taken = true;
    return release;
  });
  await turn();
  expect(taken).toBe(false);
  gone.resolve();
  expect(await removed).toBe(true);
  const release = await take;
  const never = () => Promise.reject(new Error("it is in use"));
  expect(await uses.removeUnused("app", never)).toBe(false);
  release();
  release();
  expect(await uses.removeUnused("app", () => Promise.resolve())).toBe(true);
});

test("an image that was used recently is kept for a while", async () => {
  const image = await store.ensure(`oci:${await makeLayout(folder, "app")}`);
  const hour = 3_600_000;
  expect(await store.collect(() => new Set(), { unusedForMs: hour })).toEqual([]);
  const old = new Date(Date.now() - 2 * hour);
  await utimes(join(image.rootfs, ".."), old, old);
  // In use at this moment, so the hour starts again.
  expect(await store.collect(() => new Set([image.digest]), { unusedForMs: hour })).toEqual([]);
  expect(await store.collect(() => new Set(), { unusedForMs: hour })).toEqual([]);
  await utimes(join(image.rootfs, ".."), old, old);
  expect(await store.collect(() => new Set(), { unusedForMs: hour })).toEqual([image.digest]);
});

test("images that no machine needs stay within their limit: the least recently used are deleted when others come", async () => {
  const machines = new Set<string>();
  const large = async (name: string) =>
    `oci:${await layoutOf(folder, name, [[{ name, content: name.repeat(300_000) }]])}`;
  store = await openImageStore({ dataDir: join(folder, "data"), imageKeepMb: 1, inUse: () => machines });
  const used = await store.ensure(await large("used"));
  machines.add(used.digest);
  const first = await store.ensure(await large("first"));
  const second = await store.ensure(await large("2nd"));
  expect((await store.list()).map(({ digest }) => digest).toSorted()).toEqual([used.digest, second.digest].toSorted());
  expect(await store.get(first.digest)).toBeUndefined();
});

test("layers stay within their limit: the least recently used are deleted first, needed ones never", async () => {
  const place = join(folder, "layers");
  const cache = new LayerCache(place, 25);
  const digests = ["a", "b", "c"].map((letter) => `sha256:${letter.repeat(64)}`);
  const [a = "", b = "", c = ""] = digests;
  const never = new AbortController().signal;
  using _ = await cache.hold([a]);
  for (const [age, digest] of [a, b, c].entries()) {
    await cache.obtain(digest, (file) => writeFile(file, "0123456789"), never);
    const used = new Date(Date.now() - (3 - age) * 60_000);
    await utimes(cache.file(digest), used, used);
  }
  expect(await cache.trim()).toBe(10);
  expect(await readdir(place)).toEqual([a, c].map((digest) => digest.slice(7)));
  let downloads = 0;
  await cache.obtain(c, async () => void (downloads += 1), never);
  expect(downloads).toBe(0);
});
