// Tests run without Docker. This fake one answers the two requests of the store from an archive like that of `docker save`.
import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { openImageStore } from "../src/open.ts";
import { leftovers, makeLayout, readRootfs, skopeo } from "./fixtures.ts";

let folder: string;

beforeEach(async () => {
  folder = await tempFolder("images");
  vi.stubEnv("DOCKER_HOST", `unix://${folder}/docker.sock`);
});
afterEach(() => void vi.unstubAllEnvs());

test("imports an image from the host's Docker, once", async () => {
  const layout = await makeLayout(folder, "app");
  const file = join(folder, "saved.tar");
  await skopeo("copy", "-q", `oci:${layout}:latest`, `docker-archive:${file}:docker.io/library/shop:1`);
  const asked: string[] = [];
  let id = "sha256:one";
  const docker = createServer((request, reply) => {
    const path = decodeURIComponent(request.url ?? "");
    asked.push(path);
    if (path.endsWith("/json") && path.includes("shop:1")) reply.end(JSON.stringify({ Id: id }));
    else if (path.includes("/get")) createReadStream(file).pipe(reply);
    else reply.writeHead(404).end(JSON.stringify({ message: "no such image" }));
  });
  await new Promise<void>((resolve) => docker.listen(join(folder, "docker.sock"), resolve));
  onTestFinished(() => {
    docker.closeAllConnections();
    docker.close();
  });
  const dataDir = join(folder, "data");
  const store = await openImageStore({ dataDir });
  const image = await store.ensure("docker-daemon:shop:1");
  expect(await readRootfs(image.rootfs, "app/content")).toBe("app");
  expect((await store.ensure("docker-daemon:shop:1")).rootfs).toBe(image.rootfs);
  await expect(store.ensure("docker-daemon:other:1")).rejects.toMatchObject({ code: "not_found" });
  // Built again between the check and the export.
  await store.collect(() => new Set());
  docker.on("request", ({ url }) => url?.includes("/get") && (id = "sha256:two"));
  await expect(store.ensure("docker-daemon:shop:1")).rejects.toMatchObject({ code: "aborted" });
  expect(await leftovers(dataDir)).toEqual([]);
});

test("reports that there is no Docker", async () => {
  const store = await openImageStore({ dataDir: join(folder, "data") });
  await expect(store.ensure("docker-daemon:shop:1")).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("Docker does not answer"),
  });
});
