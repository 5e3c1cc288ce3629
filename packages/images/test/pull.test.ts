/**
 * @module-tag again
 */
// Pulls over a connection to Debian's docker-registry that is slow, breaks and changes data.
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { useTempFolder } from "../../platform/test/helpers/temp.ts";
import type { ImageProgress } from "../src/contract.ts";
import { openImageStore } from "../src/open.ts";
import { type BadLine, type Mischief, openBadLine } from "./bad-line.ts";
import { addLayer, leftovers, makeLayout, makeList, readRootfs } from "./fixtures.ts";
import { type RealRegistry, startRegistry } from "./real-registry.ts";

const MB = 1024 * 1024;
const IMPATIENT = { replyMs: 2000, stallMs: 300, stallBytes: 1, firstDelayMs: 10, longestDelayMs: 50 };

let folder: string;
let registry: RealRegistry;
const temporary = useTempFolder("images");
let dataDir: string;
let tests = 0;

beforeAll(async () => {
  folder = temporary.path;
  registry = await startRegistry(folder);
  const layout = await makeLayout(folder, "big");
  for (const name of ["one", "two", "three", "four"]) await addLayer(folder, layout, name, 3 * MB);
  await registry.push(layout, "big:1");
}, 30_000);
afterAll(async () => {
  await registry?.stop();
});
beforeEach(() => {
  dataDir = join(folder, `data-${++tests}`);
});
afterEach(async () => {
  expect(await leftovers(dataDir)).toEqual([]);
});

async function line(mischief?: Parameters<typeof openBadLine>[1]): Promise<BadLine> {
  const opened = await openBadLine(registry.host, mischief);
  onTestFinished(() => opened.close());
  return opened;
}

function open(more: Partial<Parameters<typeof openImageStore>[0]> = {}) {
  return openImageStore({ dataDir, patience: IMPATIENT, environment: { HOME: "/nowhere" }, ...more });
}

const layersIn = (place = dataDir) => readdir(join(place, "images/blobs/sha256")).catch(() => []);
const large = (request: { url?: string | undefined; headers: { range?: string | undefined } }) =>
  request.url?.includes("/blobs/") === true;

test("an image that is too large as it comes, or for which the disk has no room, is not downloaded", async () => {
  const counted = await line();
  const refused = async (more: Parameters<typeof open>[0], details: object) => {
    await expect((await open(more)).ensure(`${counted.host}/big:1`)).rejects.toMatchObject({ details });
  };
  await refused({ imageMaxMb: 11 }, { limit_bytes: 11 * MB });
  await refused({ diskReserveMb: 1024 ** 3 }, { reason: "disk full" });
  expect(counted.served.filter(isBlob)).toHaveLength(1); // the configuration
});

describe("a download", () => {
  test("fetches layers in parallel, each of them once, and reports its progress", async () => {
    const slow = await line(() => ({ slowMs: 5 }));
    const seen: ImageProgress[] = [];
    const store = await open();
    const image = await store.ensure(`${slow.host}/big:1`, { onProgress: (progress) => seen.push(progress) });
    expect((await stat(image.rootfs)).size).toBeGreaterThan(12 * MB);
    expect(slow.mostAtOnce()).toBe(3);
    const downloads = seen.filter((progress) => progress.step === "download");
    expect([...new Set(seen.map(({ step }) => step))]).toEqual(["resolve", "download", "unpack", "pack"]);
    expect(new Set(downloads.map(({ layer }) => layer)).size).toBe(5);
    const total = downloads[0]?.imageTotalBytes ?? 0;
    expect(total).toBeGreaterThan(12 * MB);
    expect(downloads.map(({ imageDoneBytes }) => imageDoneBytes)).toEqual(
      downloads.map(({ imageDoneBytes }) => imageDoneBytes).toSorted((a, b) => a - b),
    );
    expect(downloads.at(-1)?.imageDoneBytes).toBe(total);
    for (const { digest } of await store.list()) expect(digest).toBe(image.digest);
    const asked = slow.served.filter(isBlob).map(({ path }) => path);
    expect(asked).toHaveLength(new Set(asked).size);
  });

  test("is shared by all callers, and its layers by the next image", async () => {
    const watched = await line(() => ({ slowMs: 1 }));
    const store = await open();
    const images = await Promise.all(Array.from({ length: 5 }, () => store.ensure(`${watched.host}/big:1`)));
    expect(new Set(images.map(({ rootfs }) => rootfs)).size).toBe(1);
    const before = sum(watched.blobBytes());
    const next = join(folder, "big");
    await addLayer(folder, next, "five", MB);
    await registry.push(next, "big:2");
    await store.ensure(`${watched.host}/big:2`);
    expect(sum(watched.blobBytes()) - before).toBeLessThan(1.1 * MB);
    // Two at once with layers in common.
    const fresh = await open({ dataDir: `${dataDir}-b` });
    const start = sum(watched.blobBytes());
    await Promise.all([fresh.ensure(`${watched.host}/big:1`), fresh.ensure(`${watched.host}/big:2`)]);
    expect(sum(watched.blobBytes()) - start).toBeLessThan(14 * MB);
  });

  test("that breaks again and again continues where it stopped", async () => {
    const cut = await line((request) => (large(request) ? { cutAfter: MB } : {}));
    const image = await (await open()).ensure(`${cut.host}/big:1`);
    expect(await readRootfs(image.rootfs, "app/content")).toBe("big");
    const [most] = [...cut.blobBytes().values()].toSorted((a, b) => b - a);
    // Only what was lost when the connection broke is sent again.
    expect(most).toBeLessThan(6 * MB);
    expect(cut.served.some(({ headers, status }) => headers.range !== undefined && status === 206)).toBe(true);
  });

  test("from a server that ignores ranges starts from the beginning", async () => {
    const rude = await line((request, number) =>
      large(request) ? { ignoreRange: true, ...(number === 0 && { cutAfter: MB }) } : {},
    );
    const image = await (await open()).ensure(`${rude.host}/big:1`);
    expect(await readRootfs(image.rootfs, "app/content")).toBe("big");
    expect(rude.served.filter(({ headers }) => headers.range !== undefined).map(({ status }) => status)).toContain(200);
  });

  test("that stalls, or gets a 503 or 429, is repeated", async () => {
    const busy = await line((request, number) => {
      if (!large(request)) return number === 0 ? { status: 503, headers: { "retry-after": "0" } } : {};
      if (number === 0) return { status: 429, headers: { "retry-after": "0" } };
      return number === 1 ? { slowMs: 1000 } : {};
    });
    const image = await (await open()).ensure(`${busy.host}/big:1`);
    expect(await readRootfs(image.rootfs, "app/content")).toBe("big");
  });

  test("fails after enough attempts, and the next one continues it", async () => {
    const dead = await line((request, number) => (large(request) && number > 0 ? { status: 500 } : { cutAfter: MB }));
    const store = await open({ patience: { ...IMPATIENT, tries: 3 } });
    await expect(store.ensure(`${dead.host}/big:1`)).rejects.toMatchObject({
      code: "unavailable",
      details: { registry: dead.host },
      message: expect.stringContaining("the download continues where it stopped"),
    });
    expect(await store.list()).toEqual([]);
    expect((await layersIn()).filter((name) => name.endsWith(".part")).length).toBeGreaterThan(0);
    const direct = await line();
    const image = await store.ensure(`${direct.host}/big:1`);
    expect(sum(direct.blobBytes())).toBeLessThan(11.5 * MB);
    expect(await readRootfs(image.rootfs, "app/content")).toBe("big");
  });

  test("ends at once when the last caller leaves, and is continued later", async () => {
    const slow = await line((request) => (large(request) ? { slowMs: 20 } : {}));
    const abort = new AbortController();
    const store = await open();
    const pulled = store.ensure(`${slow.host}/big:1`, {
      signal: abort.signal,
      onProgress: (progress) => progress.step === "download" && progress.imageDoneBytes > 2 * MB && abort.abort(),
    });
    await expect(pulled).rejects.toMatchObject({ code: "aborted" });
    const before = sum(slow.blobBytes());
    const direct = await line();
    await store.ensure(`${direct.host}/big:1`);
    expect(sum(direct.blobBytes())).toBeLessThan(13 * MB - before + MB);
  });
});

describe("what a registry may not do", () => {
  test("a layer that does not match its digest is refused and deleted", async () => {
    const lying = await line((request) => (large(request) ? { damaged: true } : {}));
    const store = await open();
    await expect(store.ensure(`${lying.host}/big:1`)).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("does not match its digest"),
    });
    expect(await store.list()).toEqual([]);
    expect(await layersIn()).toEqual([]);
  });

  test("a manifest that does not match its digest is refused", async () => {
    const store = await open();
    const { digest } = await store.ensure(`${registry.host}/big:1`);
    const lying = await line((request) => (request.url?.includes("/manifests/") ? { damaged: true } : {}));
    const other = await open({ dataDir: `${dataDir}-b` });
    await expect(other.ensure(`${lying.host}/big@${digest}`)).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining(`its manifest is not ${digest}`),
    });
  });

  test.each([
    ["endless", JSON.stringify({ schemaVersion: 2, padding: "x".repeat(5 * MB) }), "more than 4194304 bytes"],
    ["of too many layers", manifest(Array(300).fill(part("a"))), "0 to 256 layers"],
    ["of too many bytes", manifest([part("a", 2 ** 40)]), "claims to have"],
    ["of parts without digest", manifest([{ digest: "sha256:../../x", size: 1 }]), "no sha256 digest"],
    ["of something else", '{"schemaVersion":2}', "no sha256 digest"],
    ["of no JSON", "<html>", "is not that of a container image"],
  ])("a manifest %s is refused before anything is downloaded", async (_, body, why) => {
    const hostile = await line((request) =>
      request.url?.includes("/manifests/") ? { status: 200, body, headers: {} } : {},
    );
    await expect((await open()).ensure(`${hostile.host}/big:1`)).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining(why),
    });
    expect(sum(hostile.blobBytes())).toBe(0);
  });

  test("an image for another architecture is refused before its layers are downloaded", async () => {
    const arm64 = await makeLayout(folder, "arm64", { architecture: "arm64" });
    await addLayer(folder, arm64, "large", MB);
    await registry.push(arm64, "arm64:1");
    await registry.push(await makeList(folder, "arm64-list", { arm64 }), "arm64:list", "--all");
    const watched = await line();
    for (const tag of ["1", "list"])
      await expect((await open()).ensure(`${watched.host}/arm64:${tag}`)).rejects.toMatchObject({
        code: "invalid_argument",
        message: expect.stringContaining("is for linux/arm64; machines run linux/amd64"),
      });
    expect(sum(watched.blobBytes())).toBeLessThan(10_000);
  });

  test("redirects to storage are followed, but not endlessly and not away from TLS", async () => {
    const storage = await line();
    const leading = await line(
      (request): Mischief =>
        large(request) ? { status: 307, headers: { location: `http://${storage.host}${request.url}` } } : {},
    );
    const image = await (await open()).ensure(`${leading.host}/big:1`);
    expect(await readRootfs(image.rootfs, "app/content")).toBe("big");
    expect(sum(leading.blobBytes())).toBe(0);
    for (const location of [`http://${storage.host}x.example/`, "ftp://127.0.0.1/", "http://10.0.0.1/", "/v2/loop"]) {
      const bad = await line(() => ({ status: 302, headers: { location } }));
      await expect((await open({ dataDir: `${dataDir}-b` })).ensure(`${bad.host}/big:1`)).rejects.toMatchObject({
        code: "unavailable",
        message: expect.stringMatching(/not a valid address|not protected by TLS|redirected more than 5 times/),
      });
    }
  });
});

function isBlob({ path }: { path: string }): boolean {
  return path.includes("/blobs/");
}

function sum(bytes: Map<string, number>): number {
  return [...bytes.values()].reduce((total, count) => total + count, 0);
}

function part(letter: string, size = 1) {
  return { digest: `sha256:${letter.repeat(64)}`, size };
}

function manifest(layers: unknown[]): string {
  return JSON.stringify({ schemaVersion: 2, config: part("c"), layers });
}
