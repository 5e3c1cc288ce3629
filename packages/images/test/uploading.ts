/** A platform on a fake host with a real image store, and images to upload to it. */
import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { type ClientOptions, HibernautClient, type ImageSource } from "@hibernaut/client";
import { startApi, type TestApi } from "../../api/test/helpers.ts";
import { Library } from "../src/library.ts";
import { openImages } from "../src/open.ts";

export interface UploadPlatform {
  server: TestApi;
  images: Awaited<ReturnType<typeof openImages>>["images"];
  uploads: Awaited<ReturnType<typeof openImages>>["uploads"];
  /** A client that gets through to the platform as `fetch` lets it. */
  client(fetch?: ClientOptions["fetch"]): HibernautClient;
  close(): Promise<void>;
}

/** Starts a platform whose images are in that directory, as after a restart. */
export async function startUploadPlatform(
  dataDir: string,
  options: Partial<Parameters<typeof openImages>[0]> = {},
): Promise<UploadPlatform> {
  const { images, uploads } = await openImages({ dataDir, ...options });
  const inUse = () => new Set<string>();
  const library = new Library({ images, inUse, keepMs: 0, onFault: () => {} });
  const server = await startApi({ images: library, uploads });
  return {
    server,
    images,
    uploads,
    client: (fetch) => new HibernautClient({ apiUrl: server.url, token: server.token, ...(fetch && { fetch }) }),
    close: () => server.close(),
  };
}

/** An OCI layout with one image, as a source for uploads. */
export async function layoutSource(layout: string, name = "shop:latest"): Promise<ImageSource & { layers: string[] }> {
  const blob = (digest: string) => join(layout, "blobs", digest.replace(":", "/"));
  const { manifests } = JSON.parse(await readFile(join(layout, "index.json"), "utf8"));
  const manifest = await readFile(blob(manifests[0].digest), "utf8");
  const layers = JSON.parse(manifest).layers.map(({ digest }: { digest: string }) => digest);
  return { name, manifest, layers, read: (digest, offset) => createReadStream(blob(digest), { start: offset }) };
}

/** The size of a part of a layout. */
export async function blobSize(layout: string, digest: string): Promise<number> {
  return (await stat(join(layout, "blobs", digest.replace(":", "/")))).size;
}

/** A `fetch` that counts the bytes of blobs that were sent, and does to each request with bytes what `mischief` says. */
export function badLine(mischief: (request: number) => { cutAfter?: number; loseReply?: boolean } = () => ({})) {
  const line = { requests: 0, bytes: 0, fetch };
  async function fetch(...[url, init = {}]: Parameters<typeof globalThis.fetch>): Promise<Response> {
    if (init.method !== "PATCH" || !(init.body instanceof ReadableStream)) return globalThis.fetch(url, init);
    const { cutAfter = Number.POSITIVE_INFINITY, loseReply = false } = mischief(line.requests++);
    const body = ReadableStream.from(passing(init.body as ReadableStream<Uint8Array>, cutAfter));
    const reply = await globalThis.fetch(url, { ...init, body });
    if (loseReply) throw new TypeError("fetch failed", { cause: new Error("the reply was lost") });
    return reply;
  }
  async function* passing(body: ReadableStream<Uint8Array>, cutAfter: number): AsyncGenerator<Uint8Array> {
    let sent = 0;
    for await (const chunk of body) {
      const part = chunk.subarray(0, cutAfter - sent);
      sent += part.length;
      line.bytes += part.length;
      yield part;
      if (sent >= cutAfter) throw new Error("the line was cut");
    }
  }
  return line;
}
