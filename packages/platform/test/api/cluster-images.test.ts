/** Images between hosts: one that another host has is not pulled, and one that does not arrive whole is not used. */
import { randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { get } from "node:http";
import { join } from "node:path";
import fastify from "fastify";
import { afterEach, beforeEach, expect, test } from "vitest";
import { fetchImage, peerImageRoute } from "../../src/api/cluster/images.ts";
import type { Api } from "../../src/api/deps.ts";
import type { View } from "../../src/cluster/cluster.ts";
import type { PeerClient } from "../../src/cluster/peer-client.ts";
import { ImageDirectory } from "../../src/images/image-directory.ts";
import { openImages } from "../../src/images/index.ts";
import { tempFolder } from "../helpers/temp.ts";

const DIGEST = `sha256:${"ab".repeat(32)}`;
const REF = `upload:shop@${DIGEST}`;
const CONFIG = { entrypoint: [], cmd: ["app"], env: [], user: "", workingDir: "/" };
/** More than one block of a stream. */
const ROOTFS = randomBytes(300_000);

let folder: string;
let server: Api;
let url: string;
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
  server.addHook("onRequest", async ({ raw, headers }) => {
    if (headers["from-a-host"] === "1") hosts.set(raw.socket, "b");
  });
  peerImageRoute(server, { connections: hosts, images });
  url = await server.listen({ host: "127.0.0.1", port: 0 });
});
afterEach(() => server.close());

/** The image store of a host that asks host a. */
async function storeOfB() {
  const view = {
    hosts: () => [
      { name: "a", up: {} },
      { name: "b", up: {} },
    ],
  } as unknown as View;
  const client = {
    send: (_host: string, { path }: { path: string }) =>
      new Promise((resolve, reject) => {
        get(url + path, { headers: { "from-a-host": "1" } }, (response) => {
          const push = response.push.bind(response);
          response.push = (chunk: Buffer | null) => push(chunk === null ? null : damage(chunk));
          resolve(response);
        }).once("error", reject);
      }),
  } as unknown as PeerClient;
  const fetch = fetchImage({ host: "b", view, client });
  return (await openImages({ dataDir: join(folder, "b"), fetch })).images;
}

test("an image that another host has arrives whole, and is used from then on", async () => {
  const images = await storeOfB();
  const image = await images.ensure(REF);
  expect(image).toMatchObject({ digest: DIGEST, config: CONFIG, sizeBytes: ROOTFS.length });
  expect((await readFile(image.rootfs)).equals(ROOTFS)).toBe(true);
  await server.close();
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
