/** A large upload over loopback: how fast it is, and that the platform's memory does not grow with the image. */
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { Place } from "../../platform/test/helpers/served.ts";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { addLayer, makeLayout } from "./fixtures.ts";
import { layoutSource } from "./uploading.ts";

const MB = 1024 * 1024;
const SIZES_MB = [200, 600];
/** Buffers of connections and files that the garbage collector has not freed yet. */
const GROWTH_MB = 128;

const place = Place.forTests();

/** The largest resident size of the platform's process so far. */
async function peakMb(): Promise<number> {
  const status = await readFile(`/proc/${place.served.pid}/status`, "utf8");
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

test.each(SIZES_MB)("%i MB", { timeout: 300_000 }, async (sizeMb) => {
  const folder = await tempFolder("images");
  const layout = await makeLayout(folder, `size-${sizeMb}`);
  await addLayer(folder, layout, "big", sizeMb * MB);
  const before = await peakMb();
  let sentMs = 0;
  const begun = performance.now();
  await place.client.uploadImage(await layoutSource(layout), {
    onProgress: ({ step }) => {
      if (step === "upload") sentMs = performance.now() - begun;
    },
  });
  const [after, whole] = [await peakMb(), performance.now() - begun];
  const speed = Math.round(sizeMb / (sentMs / 1000));
  console.log(
    `${sizeMb} MB: sent in ${Math.round(sentMs)} ms (${speed} MB/s), ready after ${Math.round(whole)} ms; ` +
      `peak memory of the platform ${Math.round(before)} MB before, ${Math.round(after)} MB after`,
  );
  expect(after - before).toBeLessThan(GROWTH_MB);
});
