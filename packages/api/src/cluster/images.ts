/** Images between the hosts of a cluster: one that a host has need not be uploaded, or pulled, to each of the others. */
import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { PeerClient, View } from "@hibernaut/cluster";
import { HibernautError } from "@hibernaut/domain/errors";
import type { FetchImage, Image, ImageConfig, ImageStore } from "@hibernaut/images";
import type { Api, ApiCluster } from "../deps.ts";

/** What is known of the image, in JSON and base64. */
const ABOUT_HEADER = "hibernaut-image";
/** SHA-256, behind the root file system: it is known when that has been read. */
const CHECKSUM_BYTES = 32;

interface About {
  config: ImageConfig;
  sizeBytes: number;
}

/** Registers the route. Only hosts of the cluster see it, so it is in no document. */
export function peerImageRoute(
  app: Api,
  { connections, images }: Pick<ApiCluster, "connections"> & { images: Pick<ImageStore, "get"> },
): void {
  app.get("/peer/images/:digest", { schema: { hide: true } }, async (request, reply) => {
    if (!connections.has(request.raw.socket)) return reply.callNotFound();
    const { digest } = request.params as { digest: string };
    const image = await images.get(digest);
    if (image === undefined) throw new HibernautError("not_found", `This host has no image ${digest.slice(0, 80)}.`);
    const { config, sizeBytes } = image;
    const about: About = { config, sizeBytes };
    return reply
      .type("application/octet-stream")
      .header(ABOUT_HEADER, Buffer.from(JSON.stringify(about)).toString("base64"))
      .header("content-length", sizeBytes + CHECKSUM_BYTES)
      .send(Readable.from(withChecksum(image), { objectMode: false }));
  });
}

/** Returns how to get images from the other hosts. */
export function fetchImage({
  host: own,
  view,
  client,
}: {
  host: string;
  view: Pick<View, "hosts">;
  client: PeerClient;
}): FetchImage {
  return async (digest, file, signal) => {
    for (const { name, up } of view.hosts()) {
      if (name === own || up === undefined) continue;
      try {
        const path = `/peer/images/${digest}`;
        const response = await client.send(name, { method: "GET", path, headers: {}, signal });
        if (response.statusCode === 200) return await receive(response, file);
        response.resume();
      } catch {
        // The host went away, or sent something else: another one, or the image's source, may have it.
        signal.throwIfAborted();
      }
    }
    return undefined;
  };
}

async function* withChecksum({ rootfs }: Image): AsyncGenerator<Buffer, void> {
  const hash = createHash("sha256");
  for await (const bytes of createReadStream(rootfs) as AsyncIterable<Buffer>) {
    hash.update(bytes);
    yield bytes;
  }
  yield hash.digest();
}

/** Writes the root file system to the file. Rejects when it is not whole. */
async function receive(response: IncomingMessage, file: string): Promise<{ config: ImageConfig }> {
  const text = Buffer.from(String(response.headers[ABOUT_HEADER]), "base64").toString();
  const { config, sizeBytes } = JSON.parse(text) as About;
  const hash = createHash("sha256");
  let left = sizeBytes;
  const checksum: Buffer[] = [];
  async function* contents(): AsyncGenerator<Buffer, void> {
    for await (const bytes of response as AsyncIterable<Buffer>) {
      const mine = bytes.subarray(0, left);
      left -= mine.length;
      hash.update(mine);
      if (mine.length < bytes.length) checksum.push(bytes.subarray(mine.length));
      if (mine.length > 0) yield mine;
    }
  }
  await pipeline(contents, createWriteStream(file, { mode: 0o644 }));
  if (left > 0 || !Buffer.concat(checksum).equals(hash.digest())) throw new Error("the image did not arrive whole");
  return { config };
}
