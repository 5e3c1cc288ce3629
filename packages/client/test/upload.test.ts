import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { addLayer, makeLayout, temporaryFolder } from "../../images/test/fixtures.ts";
import { badLine, layoutSource, startUploadPlatform, type UploadPlatform } from "../../images/test/uploading.ts";
import { nextSize, Pieces } from "../src/pieces.ts";

const KB = 1024;
const MB = 1024 * KB;

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let layout: string;
let platform: UploadPlatform;
let count = 0;

beforeAll(async () => {
  folder = await temporaryFolder();
  layout = await makeLayout(folder.path, "shop");
  await addLayer(folder.path, layout, "big", 2 * MB);
});
afterAll(() => folder[Symbol.asyncDispose]());
beforeEach(async () => {
  platform = await startUploadPlatform(join(folder.path, `data-${(count += 1)}`));
});
afterEach(() => platform.close());

test("requests become smaller for a proxy that takes little at a time", async () => {
  const limit = 300 * KB;
  const sizes: number[] = [];
  const narrow: typeof fetch = async (url, init = {}) => {
    if (init.method !== "PATCH") return fetch(url, init);
    const body = Buffer.concat(await Array.fromAsync(init.body as ReadableStream<Uint8Array>));
    if (body.length > limit) return new Response("<html>413 Request Entity Too Large</html>", { status: 413 });
    sizes.push(body.length);
    return fetch(url, { ...init, body });
  };
  await platform.client(narrow).uploadImage(await layoutSource(layout), { retryMs: 1 });
  expect(Math.max(...sizes)).toBe(256 * KB);
});

test("five failures in a row without a byte that arrived end an upload", async () => {
  const line = badLine(() => ({ cutAfter: 0 }));
  const upload = platform.client(line.fetch).uploadImage(await layoutSource(layout), { retryMs: 1 });
  await expect(upload).rejects.toMatchObject({ code: "unavailable" });
  expect(line.requests).toBe(5);
});

test("what the source fails with is what the upload fails with", async () => {
  const source = await layoutSource(layout);
  async function* read(): AsyncGenerator<Uint8Array> {
    yield new Uint8Array(1);
    throw new Error("the disk is broken");
  }
  const line = badLine();
  await expect(platform.client(line.fetch).uploadImage({ ...source, read })).rejects.toThrow("the disk is broken");
  expect(line.requests).toBe(1);
});

test("an upload that is aborted rejects with the reason, and reads its source no longer", async () => {
  const source = await layoutSource(layout);
  const stop = new AbortController();
  let open = 0;
  async function* read(digest: string, offset: number): AsyncGenerator<Uint8Array> {
    open += 1;
    try {
      yield* source.read(digest, offset);
    } finally {
      open -= 1;
    }
  }
  const onProgress = () => stop.abort(new Error("enough"));
  const upload = platform.client().uploadImage({ ...source, read }, { signal: stop.signal, onProgress });
  await expect(upload).rejects.toThrow("enough");
  expect(open).toBe(0);
});

test("a slow network gets smaller requests, a fast one larger, within limits", () => {
  expect(nextSize(MB, 100)).toBe(2 * MB);
  expect(nextSize(MB, 5000)).toBe(MB);
  expect(nextSize(MB, 20_000)).toBe(MB / 2);
  expect(nextSize(64 * KB, 20_000)).toBe(64 * KB);
  expect(nextSize(64 * MB, 1)).toBe(64 * MB);
  expect(nextSize(256 * KB, 1, 256 * KB)).toBe(256 * KB);
});

test("pieces are the source's bytes, in order, and restart where they are told to", async () => {
  const bytes = randomBytes(3 * MB + 7);
  async function* open(offset: number) {
    for (let at = offset; at < bytes.length; at += 100_003) yield bytes.subarray(at, at + 100_003);
  }
  await using pieces = new Pieces((offset) => open(offset));
  const take = async (offset: number) => Buffer.concat(await Array.fromAsync(pieces.next(offset, () => {})));
  const first = await take(0);
  expect(first.equals(bytes.subarray(0, MB))).toBe(true);
  pieces.succeeded();
  expect((await take(MB)).equals(bytes.subarray(MB, 3 * MB))).toBe(true);
  await pieces.restart();
  expect((await take(12_345)).equals(bytes.subarray(12_345, 12_345 + MB))).toBe(true);
});
