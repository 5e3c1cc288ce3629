/**
 * @module-tag again
 */
// `kill -9` of a platform that receives an upload.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { addLayer, leftovers, makeLayout, readRootfs } from "./fixtures.ts";
import { badLine, layoutSource, startUploadPlatform } from "./uploading.ts";

const MB = 1024 * 1024;
const LAYER_BYTES = 3 * MB;
/** What the platform gets before it dies, of the large layer. */
const SENT_BYTES = MB;

test("the next platform continues where the killed one ended", async () => {
  const folder = await tempFolder("images");
  const layout = await makeLayout(folder, "app");
  await addLayer(folder, layout, "big", LAYER_BYTES);
  const source = await layoutSource(layout);
  const dataDir = join(folder, "data");
  const [, big = ""] = source.layers;
  const index = join(import.meta.dirname, "../src/open.ts");
  // Receives the beginning of a layer, and then waits for more of it without end.
  const script = `import { createReadStream } from "node:fs";
    import { Readable } from "node:stream";
    const { openImages } = await import(${JSON.stringify(index)});
    const { uploads } = await openImages(${JSON.stringify({ dataDir })});
    await uploads.begin("shop:latest", ${JSON.stringify(source.manifest)});
    const beginning = createReadStream(${JSON.stringify(join(layout, "blobs", big.replace(":", "/")))}, { end: ${SENT_BYTES - 1} });
    const endless = new Readable({ read() {} });
    beginning.on("data", (chunk) => endless.push(chunk));
    await uploads.append(${JSON.stringify(big)}, 0, endless, new AbortController().signal);`;
  const part = join(dataDir, "images/blobs/sha256", `${big.slice("sha256:".length)}.part`);
  const sizeOf = (file: string) =>
    stat(file).then(
      ({ size }) => size,
      () => 0,
    );

  const killed = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: "ignore" });
  await expect.poll(() => sizeOf(part), { timeout: 20_000, interval: 10 }).toBe(SENT_BYTES);
  const ended = once(killed, "exit");
  killed.kill("SIGKILL");
  expect(await ended).toEqual([null, "SIGKILL"]);

  const platform = await startUploadPlatform(dataDir);
  onTestFinished(() => platform.close());
  expect(await platform.client().listUploads()).toMatchObject([{ done_bytes: SENT_BYTES }]);
  // What an upload has brought is not deleted as long as it may continue.
  await platform.images.collect(() => new Set());
  await platform.images.dropLayers();
  const line = badLine();
  const { ref } = await platform.client(line.fetch).uploadImage(source);
  expect(line.bytes).toBeLessThan(LAYER_BYTES - SENT_BYTES + MB);
  expect(await readRootfs((await platform.images.ensure(ref)).rootfs, "app/content")).toBe("app");
  expect(await leftovers(dataDir)).toEqual([]);
  expect((await readdir(join(dataDir, "images/blobs/sha256"))).filter((name) => name.endsWith(".part"))).toEqual([]);
  expect(await readdir(join(dataDir, "images/blobs/uploads"))).toEqual([]);
});
