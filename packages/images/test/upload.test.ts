// Images that clients on other machines upload: what is sent, what is refused, and what interruptions cost.
import { createHash, randomBytes } from "node:crypto";
import { readdir, readFile, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { ImageSource, UploadProgress } from "@hibernaut/client";
import fc from "fast-check";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { longOr } from "../../platform/test/helpers/long.ts";
import { tempFolder, useTempFolder } from "../../platform/test/helpers/temp.ts";
import { addLayer, leftovers, makeLayout, readRootfs, skopeo } from "./fixtures.ts";
import { badLine, blobSize, layoutSource, startUploadPlatform, type UploadPlatform } from "./uploading.ts";

const KB = 1024;
const LAYER_BYTES = 600 * KB;

const made = useTempFolder("images");
/** An image of two layers, its next version, which has one more, and one for another processor. */
let first: string;
let second: string;
let foreign: string;
let folder: string;
let platform: UploadPlatform;

beforeAll(async () => {
  first = await makeLayout(made.path, "first", { content: "shop" });
  await addLayer(made.path, first, "big", LAYER_BYTES);
  second = join(made.path, "second");
  await skopeo("copy", `oci:${first}:latest`, `oci:${second}:latest`);
  await addLayer(made.path, second, "more", LAYER_BYTES);
  foreign = await makeLayout(made.path, "foreign", { architecture: "arm64" });
});

const dataDir = () => join(folder, "data");
beforeEach(async () => {
  folder = await tempFolder("images");
  platform = await startUploadPlatform(dataDir());
});
afterEach(() => platform.close());

async function restart(options: Parameters<typeof startUploadPlatform>[1] = {}): Promise<void> {
  await platform.close();
  platform = await startUploadPlatform(dataDir(), options);
}

const blobs = async () => (await readdir(join(dataDir(), "images/blobs/sha256"))).sort();
const isPart = (name: string) => name.endsWith(".part");
const digestOf = (content: string | Buffer) => `sha256:${createHash("sha256").update(content).digest("hex")}`;

/** A source with one layer of these bytes, whose manifest says something about the layer. */
function invented(layer: Buffer, claims: { size?: number; digest?: string } = {}) {
  const config = JSON.stringify({ os: "linux", architecture: "amd64", rootfs: { type: "layers", diff_ids: [] } });
  const digest = claims.digest ?? digestOf(layer);
  const manifest = JSON.stringify({
    schemaVersion: 2,
    config: { digest: digestOf(config), size: config.length },
    layers: [{ digest, size: claims.size ?? layer.length }],
  });
  return {
    name: "invented",
    manifest,
    digest,
    async *read(wanted: string, offset: number) {
      yield (wanted === digest ? layer : Buffer.from(config)).subarray(offset);
    },
  };
}

test("an upload becomes an image under its digest, and the next version sends only its new layer", async () => {
  const source = await layoutSource(first);
  const image = await platform.client().uploadImage(source);
  expect(image).toMatchObject({
    ref: `upload:shop:latest@${digestOf(source.manifest)}`,
    digest: digestOf(source.manifest),
  });
  const { rootfs } = await platform.images.ensure(image.ref);
  expect(await readRootfs(rootfs, "app/content")).toBe("shop");

  const line = badLine();
  const seen: UploadProgress[] = [];
  const next = await layoutSource(second, "shop:v2");
  await platform.client(line.fetch).uploadImage(next, { onProgress: (step) => seen.push(step) });
  const there = seen.flatMap((step) => (step.step === "exists" ? [step.layer] : []));
  expect(there).toEqual(source.layers);
  const sizes = await Promise.all(next.layers.slice(2).map((digest) => blobSize(second, digest)));
  const config = JSON.parse(next.manifest).config.size as number;
  expect(line.bytes).toBe((sizes[0] ?? 0) + config);
  expect(seen.findLast((step) => step.step === "upload")).toMatchObject({ layer: next.layers[2] });

  // Once more: nothing is sent at all.
  const again = badLine();
  expect(await platform.client(again.fetch).uploadImage(next)).toMatchObject({ digest: digestOf(next.manifest) });
  expect(again.requests).toBe(0);
  expect(await platform.client().listUploads()).toEqual([]);
  expect(await leftovers(dataDir())).toEqual([]);
});

test("wherever the line breaks, the upload continues there", async () => {
  const source = await layoutSource(first);
  const sizes = await Promise.all(source.layers.map((digest) => blobSize(first, digest)));
  const total = sizes.reduce((sum, size) => sum + size, JSON.parse(source.manifest).config.size as number);
  const trick = fc.oneof(
    fc.record({ cutAfter: fc.integer({ min: 0, max: 700 * KB }) }),
    fc.constant({ loseReply: true }),
    fc.constant({}),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(trick, { maxLength: 8 }), async (tricks) => {
      await platform.client().pruneImages();
      for (const { digest } of await platform.client().listUploads()) await platform.client().cancelUpload(digest);
      const line = badLine((request) => tricks[request] ?? {});
      // A cut without a byte is a failure without progress, and five of them in a row end an upload.
      const attempt = () => platform.client(line.fetch).uploadImage(source, { retryMs: 1 });
      const image = await attempt().catch(attempt);
      expect(image.digest).toBe(digestOf(source.manifest));
      // A cut costs what was on its way, and what the next request sent before the platform had noticed the cut.
      const cuts = tricks.filter((one) => "cutAfter" in one).length;
      expect(line.bytes).toBeGreaterThanOrEqual(total);
      expect(line.bytes).toBeLessThanOrEqual(total + cuts * 2 * 700 * KB);
      // Out of the grace period, so that the next run begins with nothing.
      await forget(image.digest);
    }),
    { numRuns: longOr(200, 5) },
  );
});

/** Makes an image look as if it had been uploaded long ago. */
async function age(digest: string): Promise<void> {
  const file = join(dataDir(), "images", digest.slice(7), "image.json");
  const record = JSON.parse(await readFile(file, "utf8"));
  await writeFile(file, JSON.stringify({ ...record, importedAt: new Date(0).toISOString() }));
}

/** Deletes an image, and all layers. */
async function forget(digest: string): Promise<void> {
  await age(digest);
  await platform.client().pruneImages();
}

test("two clients that upload the same image at once both get it", async () => {
  const source = await layoutSource(first);
  const lines = [badLine(), badLine((request) => (request === 1 ? { cutAfter: 100 * KB } : {}))];
  const images = await Promise.all(
    lines.map((line) => platform.client(line.fetch).uploadImage(source, { retryMs: 5 })),
  );
  expect(new Set(images.map(({ digest }) => digest))).toEqual(new Set([digestOf(source.manifest)]));
  expect(await platform.client().listImages()).toHaveLength(1);
  expect((await blobs()).filter(isPart)).toEqual([]);
});

/** Another platform, with less room. */
async function openNarrow(options: Parameters<typeof startUploadPlatform>[1]) {
  const narrow = await startUploadPlatform(join(folder, "narrow"), options);
  return { ...narrow, [Symbol.asyncDispose]: () => narrow.close() };
}

describe("refused", () => {
  const expectInvalid = (source: ImageSource, message: string, client = platform.client()) =>
    expect(client.uploadImage(source)).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining(message),
    });

  test("an image for another processor, before its layers are sent", async () => {
    const source = await layoutSource(foreign);
    const line = badLine();
    await expectInvalid(source, "is for linux/arm64; machines run linux/amd64", platform.client(line.fetch));
    expect(line.requests).toBe(1);
    expect(await platform.client().listUploads()).toEqual([]);
  });

  test("bytes that do not match their digest, which are deleted", async () => {
    const wrong = invented(randomBytes(3000), { digest: digestOf("something else") });
    await expectInvalid(wrong, "do not match its digest, so they were deleted");
    expect((await blobs()).filter(isPart)).toEqual([]);
    expect(await platform.client().listImages()).toEqual([]);
  });

  test("what is not an image, although every digest is right: the upload has ended, and takes no room", async () => {
    await expectInvalid(invented(randomBytes(3000)), "cannot be read");
    expect(await platform.client().listUploads()).toEqual([]);
    expect(await leftovers(dataDir())).toEqual([]);
  });

  test("an image that is too large as it is, or for which the disk has no room, before anything of it is sent", async () => {
    const source = invented(randomBytes(3000), { size: 30_000_000 });
    for (const [options, code] of [
      [{ imageMaxMb: 20 }, "payload_too_large"],
      [{ diskReserveMb: 1024 ** 3 }, "unavailable"],
    ] as const) {
      await using narrow = await openNarrow(options);
      const line = badLine();
      await expect(narrow.client(line.fetch).uploadImage(source)).rejects.toMatchObject({ code });
      expect(line.requests).toBe(0);
      expect(await narrow.client().listUploads()).toEqual([]);
    }
  });

  test("a manifest that lies about a size: more bytes than it says, or fewer", async () => {
    await expectInvalid(invented(randomBytes(3000), { size: 2000 }), "more were sent");
    await expectInvalid(invented(randomBytes(3000), { size: 4000 }), "ends after 3000 bytes");
  });

  test("a manifest that contradicts a layer that the platform has, or another upload", async () => {
    const source = await layoutSource(first);
    await platform.client().uploadImage(source);
    const [known = ""] = source.layers;
    await expect(platform.uploads.begin("x", invented(Buffer.alloc(9), { digest: known }).manifest)).rejects.toThrow(
      "says that the blob",
    );
    const layer = randomBytes(100);
    await platform.uploads.begin("x", invented(layer).manifest);
    await expect(platform.uploads.begin("x", invented(layer, { size: 99 }).manifest)).rejects.toThrow(
      "One of them is wrong",
    );
    expect(await platform.uploads.list()).toHaveLength(1);
  });

  test("a text that is not a manifest, and a name that is not valid", async () => {
    for (const manifest of ["", "no json", "[]", '{"manifests":[]}', '{"config":{"digest":"sha256:x","size":1}}'])
      await expect(platform.uploads.begin("x", manifest)).rejects.toMatchObject({ code: "invalid_argument" });
    for (const name of ["", "Shop", "a b", "x@y", "../x"])
      await expect(platform.uploads.begin(name, invented(Buffer.alloc(1)).manifest)).rejects.toMatchObject({
        code: "invalid_argument",
      });
    expect(await platform.uploads.list()).toEqual([]);
  });
});

describe("an unfinished upload", () => {
  /** Begins to upload the first image, and stops in the middle of its large layer, the last one. */
  async function begun(): Promise<void> {
    const source = await layoutSource(first);
    const { blobs: all } = await platform.uploads.begin(source.name, source.manifest);
    for (const { digest } of all.filter((blob) => blob.digest !== source.layers.at(-1)))
      await platform.uploads.append(digest, 0, Readable.from(source.read(digest, 0)), new AbortController().signal);
    const line = badLine(() => ({ cutAfter: 64 * KB }));
    const stop = new AbortController();
    const onProgress = (step: UploadProgress) => {
      if (step.step === "upload" && step.image_done_bytes > 300 * KB) stop.abort(new Error("enough"));
    };
    const attempt = platform.client(line.fetch).uploadImage(source, { retryMs: 1, signal: stop.signal, onProgress });
    await expect(attempt).rejects.toThrow("enough");
    // The platform notices a moment later that the connection is gone.
    await expect.poll(async () => (await platform.uploads.list())[0]?.doneBytes).toBeGreaterThan(200 * KB);
  }

  test("continues after a restart of the platform", async () => {
    await begun();
    await restart();
    const [open] = await platform.client().listUploads();
    expect(open).toMatchObject({ ref: expect.stringMatching(/^upload:shop:latest@sha256:/) });
    const line = badLine();
    await platform.client(line.fetch).uploadImage(await layoutSource(first));
    // A layer that had arrived as a whole, and was not checked when the platform ended, counts one byte less.
    expect((open?.size_bytes ?? 0) - (open?.done_bytes ?? 0) - line.bytes).toBeOneOf([0, 1]);
  });

  test("whose record or manifest is damaged begins again", async () => {
    await begun();
    const [name = ""] = await readdir(join(dataDir(), "images/blobs/uploads"));
    await writeFile(join(dataDir(), "images/blobs/sha256", name.replace(".json", "")), "{}");
    await restart();
    expect(await platform.client().listUploads()).toEqual([]);
    await writeFile(join(dataDir(), "images/blobs/uploads", name), "{");
    await restart();
    const source = await layoutSource(first);
    expect(await platform.client().uploadImage(source)).toMatchObject({ digest: digestOf(source.manifest) });
  });

  test("whose layer was damaged on the platform's disk is refused once, and then sends that layer again", async () => {
    await begun();
    const source = await layoutSource(first);
    const [small = ""] = source.layers;
    const file = join(dataDir(), "images/blobs/sha256", small.slice("sha256:".length));
    await writeFile(file, randomBytes((await readFile(file)).length));
    const attempt = () => platform.client().uploadImage(source);
    await expect(attempt()).rejects.toMatchObject({ code: "invalid_argument" });
    expect(await attempt()).toMatchObject({ digest: digestOf(source.manifest) });
  });

  test("is deleted when it was left alone for too long, and not before", async () => {
    await begun();
    const hour = 3_600_000;
    const records = join(dataDir(), "images/blobs/uploads");
    const [record = ""] = await readdir(records);
    const rested = async (hours: number) => {
      const then = new Date(Date.now() - hours * hour);
      await utimes(join(records, record), then, then);
      await restart({ uploadKeepH: 24 });
      await platform.images.collect(() => new Set());
    };
    await rested(23);
    expect(await platform.client().listUploads()).toHaveLength(1);
    expect((await blobs()).filter(isPart)).toHaveLength(1);
    await rested(25);
    expect(await platform.client().listUploads()).toEqual([]);
    expect((await blobs()).filter(isPart)).toEqual([]);
  });

  test("keeps its layers when others are deleted, until it is canceled", async () => {
    await begun();
    const had = await blobs();
    expect(await platform.client().pruneImages()).toMatchObject({ deleted: [], freed_bytes: 0 });
    expect(await blobs()).toEqual(had);
    const [open] = await platform.client().listUploads();
    await platform.client().cancelUpload(open?.digest ?? "");
    expect((await blobs()).filter(isPart)).toEqual([]);
    await expect(platform.client().cancelUpload(open?.digest ?? "")).rejects.toMatchObject({ code: "not_found" });
    await platform.client().pruneImages();
    expect(await blobs()).toEqual([]);
  });

  test("whose connection is silent ends, and the platform says where to continue", async () => {
    await restart({ uploadStallMs: 50 });
    const { manifest, digest } = invented(Buffer.alloc(1000, 1));
    await platform.uploads.begin("x", manifest);
    const silent = new Readable({ read() {} });
    silent.push(Buffer.alloc(400, 1));
    await expect(platform.uploads.append(digest, 0, silent, new AbortController().signal)).rejects.toMatchObject({
      code: "deadline_exceeded",
      details: { offset: 400 },
    });
    const rest = Readable.from([Buffer.alloc(600, 1)]);
    const end = await platform.uploads.append(digest, 400, rest, new AbortController().signal);
    expect(end).toMatchObject({ offset: 1000, sizeBytes: 1000 });
  });

  test("takes room: more than the limit has to wait, and what can never fit says so", async () => {
    await restart({ uploadMaxMb: 1 });
    const of = (bytes: number) => invented(Buffer.from([bytes % 251]), { size: bytes }).manifest;
    await expect(platform.uploads.begin("x", of(KB * KB + 1))).rejects.toMatchObject({ code: "payload_too_large" });
    await platform.uploads.begin("x", of(600 * KB));
    await expect(platform.uploads.begin("x", of(600 * KB + 1))).rejects.toMatchObject({
      code: "resource_exhausted",
      message: expect.stringContaining("hibernaut images cancel"),
    });
    await platform.uploads.begin("x", of(600 * KB)); // the same one
    for (let count = 1; count < 32; count += 1) await platform.uploads.begin("x", of(count));
    await expect(platform.uploads.begin("x", of(99))).rejects.toMatchObject({ code: "resource_exhausted" });
  });
});

test("an uploaded image survives until it is used, and can be made again while its layers are here", async () => {
  const { ref, digest } = await platform.client().uploadImage(await layoutSource(first));
  // No machine needs it, and images are kept for no time at all: only that it is new protects it.
  expect(await platform.client().pruneImages()).toMatchObject({ deleted: [] });
  expect(await platform.images.get(digest)).toBeDefined();

  const image = await platform.client().uploadImage(await layoutSource(second));
  await age(image.digest);
  expect(await platform.images.collect(() => new Set())).toEqual([image.digest]);
  expect(await platform.images.ensure(image.ref)).toMatchObject({ digest: image.digest });

  await forget(digest);
  await expect(platform.images.ensure(ref)).rejects.toMatchObject({
    code: "not_found",
    message: expect.stringContaining("Upload it with `hibernaut images push`"),
  });
});
