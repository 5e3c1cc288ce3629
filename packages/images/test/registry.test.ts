// Against Debian's docker-registry.
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { useTempFolder } from "../../platform/test/helpers/temp.ts";
import type { ImageStore } from "../src/contract.ts";
import { openImageStore } from "../src/open.ts";
import { makeLayout, readRootfs } from "./fixtures.ts";
import { type RealRegistry, startRegistry } from "./real-registry.ts";

let folder: string;
let host: string;
let registry: RealRegistry;
let push: RealRegistry["push"];
let store: ImageStore;
const temporary = useTempFolder("images");

beforeAll(async () => {
  folder = temporary.path;
  registry = await startRegistry(folder);
  ({ host, push } = registry);
  store = await openImageStore({ dataDir: join(folder, "data") });
});

afterAll(async () => {
  await registry?.stop();
});

/** The digest that the registry itself reports. */
async function digestAt(name: string, tag: string): Promise<string | null> {
  const accept = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json";
  const reply = await fetch(`http://${host}/v2/${name}/manifests/${tag}`, { headers: { accept } });
  return reply.headers.get("docker-content-digest");
}

test("imports by tag and by digest, under the registry's own digest", async () => {
  await push(await makeLayout(folder, "one"), "me/one:1");
  const image = await store.ensure(`${host}/me/one:1`);
  expect(image.digest).toBe(await digestAt("me/one", "1"));
  expect(await readRootfs(image.rootfs, "app/content")).toBe("one");
  const ref = `docker://${host}/me/one:ignored@${image.digest}`;
  expect(await store.ensure(ref)).toEqual({ ...image, ref });
});

test("follows a tag that moved, and keeps the old image", async () => {
  await push(await makeLayout(folder, "old"), "moving:1");
  const old = await store.ensure(`${host}/moving:1`);
  await push(await makeLayout(folder, "new"), "moving:1");
  const moved = await store.ensure(`${host}/moving:1`);
  expect(await readRootfs(moved.rootfs, "app/content")).toBe("new");
  expect(await store.get(old.digest)).toMatchObject({ rootfs: old.rootfs });
});

test("imports docker's manifest format and zstd layers", async () => {
  const layout = await makeLayout(folder, "formats");
  await push(layout, "formats:docker", "--format", "v2s2");
  await push(layout, "formats:zstd", "--dest-compress-format", "zstd");
  for (const tag of ["docker", "zstd"]) {
    const image = await store.ensure(`${host}/formats:${tag}`);
    expect(image.digest).toBe(await digestAt("formats", tag));
    expect(await readRootfs(image.rootfs, "app/content")).toBe("formats");
  }
});

test("rejects with not_found for an unknown name or tag", async () => {
  for (const name of ["nobody/nothing:1", "me/one:2", `me/one@sha256:${"0".repeat(64)}`]) {
    await expect(store.ensure(`${host}/${name}`)).rejects.toMatchObject({
      code: "not_found",
      details: { registry: host },
    });
  }
});

test("needs the registry for a tag, but not for a cached digest", async () => {
  await push(await makeLayout(folder, "gone"), "gone:1");
  const { digest } = await store.ensure(`${host}/gone:1`);
  registry.process.kill("SIGSTOP");
  try {
    const impatient = AbortSignal.timeout(300);
    await expect(store.ensure(`${host}/gone:1`, { signal: impatient })).rejects.toMatchObject({ code: "aborted" });
    expect(await store.ensure(`${host}/gone@${digest}`)).toMatchObject({ digest });
  } finally {
    registry.process.kill("SIGCONT");
  }
});

test("uses TLS with a registry on loopback that does, with any certificate", async () => {
  const secure = await startRegistry(folder, { tls: true });
  try {
    await secure.push(await makeLayout(folder, "tls"), "tls:1");
    const image = await store.ensure(`${secure.host}/tls:1`);
    expect(await readRootfs(image.rootfs, "app/content")).toBe("tls");
  } finally {
    await secure.stop();
  }
});
