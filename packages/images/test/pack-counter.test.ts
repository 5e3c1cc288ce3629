import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packCounter } from "../../../scripts/pack-counter.mjs";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { openImageStore } from "../src/open.ts";
import { listRootfs } from "./fixtures.ts";

// Any small program that uses the C library can be packed like Node, a hundred times faster.
const PROGRAM = "/bin/true";

test("packs an image that the store imports, once, with the same digest every time", async () => {
  const folder = await tempFolder("images");
  const out = join(folder, "counter");
  const steps: string[] = [];
  const packed = await packCounter({ out, node: PROGRAM, onStep: (step) => steps.push(step) });
  expect(packed).toEqual({ ref: `oci:${out}:latest`, changed: true });
  expect(steps).not.toEqual([]);
  const index = await readFile(join(out, "index.json"), "utf8");

  expect(await packCounter({ out, node: PROGRAM })).toMatchObject({ changed: false });
  expect(await packCounter({ out, node: PROGRAM, force: true })).toMatchObject({ changed: true });
  expect(await readFile(join(out, "index.json"), "utf8")).toBe(index);

  const store = await openImageStore({ dataDir: folder });
  const { config, rootfs } = await store.ensure(packed.ref);
  expect(config).toEqual({
    exposedPorts: [8080],
    entrypoint: ["node"],
    cmd: ["/app/server.mjs"],
    env: ["PATH=/usr/local/bin:/usr/bin:/bin", "PORT=8080"],
    user: "app",
    workingDir: "/app",
  });
  const files = (await listRootfs(rootfs)).join("\n");
  expect(files).toMatch(/^-rwxr-xr-x 0\/0 .*\/usr\/local\/bin\/node$/m);
  expect(files).toMatch(/^-rw-r--r-- 0\/0 .*\/app\/server\.mjs$/m);
  expect(files).toMatch(/libc\.so\.6$/m);
  expect(files).toMatch(/^drwxrwxrwt 0\/0 .*\/tmp$/m);
});

test("reports why it cannot pack a program without the C library", async () => {
  const folder = await tempFolder("images");
  await expect(packCounter({ out: join(folder, "x"), node: import.meta.filename })).rejects.toThrow();
});
