/** Images between hosts: one that another host has is not pulled, and one that does not arrive whole is not used. */
import { randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { PeerClient, type View } from "@hibernaut/cluster";
import { openImages } from "@hibernaut/images/open";
import fastify from "fastify";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ImageDirectory } from "../../images/src/image-directory.ts";
import { type PeerPort, startPeerPort } from "../../platform/test/helpers/peer-port.ts";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { fetchImage, peerImageRoute } from "../src/cluster/images.ts";
import type { Api } from "../src/deps.ts";
import { acceptPlain } from "../src/tls.ts";

const DIGEST = `sha256:${"ab".repeat(32)}`;
const REF = `upload:shop@${DIGEST}`;
const CONFIG = { entrypoint: [], cmd: ["app"], env: [], user: "", workingDir: "/" };
/** More than one block of a stream. */
const ROOTFS = randomBytes(300_000);

let folder: string;
let server: Api;
let url: string;
/** Host a, as other hosts reach it. */
let port: PeerPort;
let client: PeerClient;
/** What becomes of the bytes on their way. */
let damage: (bytes: Buffer) => Buffer;

beforeEach(async () => {
  folder = await tempFolder("images");
  damage = (bytes) => bytes;
  const images = new ImageDirectory(join(folder, "a"));
  await mkdir(join(folder, "a", "tmp-1"), { recursive: true });
  await writeFile(join(folder, "a", "tmp-1", "rootfs.squashfs"), ROOTFS);
  await images.publish(join(folder, "a", "tmp-1"), { digest: DIGEST, config: CONFIG, ref: REF });
  server = fastify();
  const hosts = new WeakMap<object, string>();
  // Behind the checksum, so that only the receiver can see it.
  server.addHook("onSend", async (_request, reply, payload) => {
    if (reply.statusCode !== 200) return payload;
    return Readable.from(damaged(payload as Readable), { objectMode: false });
  });
  peerImageRoute(server, { connections: hosts, images });
  url = await server.listen({ host: "127.0.0.1", port: 0 });
  port = await startPeerPort((socket) => {
    hosts.set(socket, "b");
    acceptPlain(server, socket);
  });
  client = new PeerClient({
    peers: port.peers,
    view: { host: () => undefined, subscribe: () => () => {} },
    service: "api",
  });
});
afterEach(async () => {
  client.close();
  port.close();
  await server.close();
});

async function* damaged(bytes: Readable): AsyncGenerator<Buffer, void> {
  for await (const chunk of bytes as AsyncIterable<Buffer>) yield damage(chunk);
}

/** The image store of a host that asks host a. */
async function storeOfB() {
  const view = {
    hosts: () => [
      { name: "a", up: {} },
      { name: "b", up: {} },
    ],
  } as unknown as View;
  const fetch = fetchImage({ host: "b", view, client });
  return (await openImages({ dataDir: join(folder, "b"), fetch })).images;
}

test("an image that another host has arrives whole, and is used from then on", async () => {
  const images = await storeOfB();
  const image = await images.ensure(REF);
  expect(image).toMatchObject({ digest: DIGEST, config: CONFIG, sizeBytes: ROOTFS.length });
  expect((await readFile(image.rootfs)).equals(ROOTFS)).toBe(true);
  port.close();
  expect((await images.ensure(REF)).rootfs).toBe(image.rootfs);
});

test("one that is damaged on its way is not used", async () => {
  damage = (bytes) => Buffer.from(bytes.map((byte) => byte ^ 1));
  const images = await storeOfB();
  await expect(images.ensure(REF)).rejects.toMatchObject({ code: "not_found" });
  expect(await images.list()).toEqual([]);
});

test("a client that is not a host of the cluster gets no image", async () => {
  expect((await fetch(`${url}/peer/images/${DIGEST}`)).status).toBe(404);
});
