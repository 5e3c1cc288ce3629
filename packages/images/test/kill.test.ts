/**
 * @module-tag again
 */
// `kill -9` of a platform during a pull from Debian's docker-registry over a slow connection.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { openImageStore } from "../src/open.ts";
import { openBadLine } from "./bad-line.ts";
import { addLayer, leftovers, makeLayout, readRootfs } from "./fixtures.ts";
import { startRegistry } from "./real-registry.ts";

const MB = 1024 * 1024;
const LAYERS = 4;
const LAYER_BYTES = 4 * MB;

test("the next platform downloads only the rest, and there is never half an image", { timeout: 60_000 }, async () => {
  const folder = await tempFolder("images");
  const registry = await startRegistry(folder);
  onTestFinished(() => registry.stop());
  const layout = await makeLayout(folder, "app");
  for (let index = 0; index < LAYERS; index += 1) await addLayer(folder, layout, `layer-${index}`, LAYER_BYTES);
  await registry.push(layout, "app:1");
  const line = await openBadLine(registry.host, ({ url }) => (url?.includes("/blobs/") ? { slowMs: 10 } : {}));
  onTestFinished(() => line.close());
  const ref = `${line.host}/app:1`;
  const dataDir = join(folder, "data");
  const index = join(import.meta.dirname, "../src/open.ts");
  const script = `const { openImageStore } = await import(${JSON.stringify(index)});
    const store = await openImageStore(${JSON.stringify({ dataDir })});
    await store.ensure(${JSON.stringify(ref)});`;
  const served = () => [...line.blobBytes().values()].reduce((total, bytes) => total + bytes, 0);

  // Three platforms die, each a bit later.
  for (const enough of [2, 6, 11].map((count) => count * MB)) {
    const platform = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: "ignore" });
    await expect.poll(served, { timeout: 20_000, interval: 5 }).toBeGreaterThan(enough);
    const ended = once(platform, "exit");
    platform.kill("SIGKILL");
    expect(await ended).toEqual([null, "SIGKILL"]);
    const store = await openImageStore({ dataDir });
    expect(await store.list()).toEqual([]);
    expect((await readdir(join(dataDir, "images"))).filter((name) => /^[0-9a-f]{64}$/.test(name))).toEqual([]);
  }
  const before = served();
  const store = await openImageStore({ dataDir });
  await store.collect(() => new Set());
  const image = await store.ensure(ref);
  expect(await readRootfs(image.rootfs, "app/content")).toBe("app");
  const whole = LAYERS * LAYER_BYTES;
  // Only what was in transit, or not yet written, when a platform died is sent twice.
  const lost = 3 * 1.5 * MB;
  expect(served() - before).toBeLessThan(whole - 11 * MB + lost);
  expect(served()).toBeLessThan(whole + lost);
  expect(await leftovers(dataDir)).toEqual([]);
  expect((await readdir(join(dataDir, "images/blobs/sha256"))).filter((name) => name.endsWith(".part"))).toEqual([]);
});
