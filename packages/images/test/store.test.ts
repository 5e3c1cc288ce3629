import { execFileSync, spawn } from "node:child_process";
import { chmodSync, chownSync, existsSync, readFileSync } from "node:fs";
import { cp, mkdir, readdir, readFile, rm, truncate, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pinned } from "@hibernaut/domain/pinned";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { NOBODY, runAsNobody } from "../../platform/test/helpers/nobody.ts";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import type { ImageProgress, ImageStore } from "../src/contract.ts";
import { openImageStore } from "../src/open.ts";
import { isRoot, leftovers, listRootfs, makeLayout, makeList, makeTool, readRootfs, skopeo } from "./fixtures.ts";

/** The program that unpacks images runs as the platform's user, so that one has to reach it. */
const nobodyReaches = await runAsNobody<boolean>({
  imports: [],
  code: `return (await import("node:fs")).existsSync(${JSON.stringify(import.meta.filename)});`,
  cwd: "/",
});

let folder: string;
let dataDir: string;
let store: ImageStore;

beforeEach(async () => {
  folder = await tempFolder("images");
  // With a colon, which ends a path for the image tools.
  dataDir = join(folder, "data:dir");
  store = await openImageStore({ dataDir });
});

afterEach(async () => {
  expect(await leftovers(dataDir)).toEqual([]);
});

/** Makes something older than a store that opens now: the clocks of file system and process differ by a tick. */
async function makeOlder(path: string): Promise<void> {
  const second = Date.now() / 1000 - 1;
  await utimes(path, second, second);
}

/** What a process runs. Empty when it has ended, whether someone has noticed or not. */
const commandOf = (pid: number) =>
  existsSync(`/proc/${pid}/cmdline`) ? readFileSync(`/proc/${pid}/cmdline`, "utf8") : "";

async function archive(layout: string, name: string, kind = "oci-archive"): Promise<string> {
  const file = join(folder, name);
  await skopeo("copy", "-q", `oci:${layout}:latest`, `${kind}:${file}:me/app:1`);
  return file;
}

describe("what can be imported", () => {
  test("an OCI layout, with its files and configuration unchanged", async () => {
    const layout = await makeLayout(folder, "app");
    const steps: ImageProgress["step"][] = [];
    const ref = `oci:${layout}:latest`;
    const image = await store.ensure(ref, { onProgress: ({ step }) => steps.push(step) });
    const [descriptor] = JSON.parse(await readFile(join(layout, "index.json"), "utf8")).manifests;
    expect(image).toMatchObject({ ref, digest: descriptor.digest });
    expect(image.config).toEqual({
      entrypoint: ["/app/program"],
      cmd: ["serve"],
      env: ["A=b c"],
      user: "app",
      workingDir: "/app",
      stopSignal: "SIGINT",
    });
    expect(steps).toEqual(["resolve", "copy", "unpack", "pack"]);
    expect(await readRootfs(image.rootfs, "app/content")).toBe("app");
    expect(image.sizeBytes).toBe((await readFile(image.rootfs)).length);
    const files = (await listRootfs(image.rootfs)).join("\n");
    expect(files).toMatch(isRoot ? /^-rw-r--r-- 1000\/1000 .*app\/content$/m : /^-rw-r--r-- 0\/0 .*app\/content$/m);
    expect(files).toMatch(/^---s--x--x .*program$/m);
    expect(files).toMatch(/link -> \/app\/content$/m);
  });

  test("an OCI archive and a docker archive, with and without a name", async () => {
    const layout = await makeLayout(folder, "app");
    const oci = await archive(layout, "oci.tar");
    const docker = await archive(layout, "docker.tar", "docker-archive");
    const first = await store.ensure(`oci-archive:${oci}`);
    expect(await store.ensure(`oci-archive:${oci}:me/app:1`)).toMatchObject({ digest: first.digest });
    const second = await store.ensure(`docker-archive:${docker}:me/app:1`);
    expect(await store.ensure(`docker-archive:${docker}`)).toMatchObject({ digest: second.digest });
    expect(await readRootfs(second.rootfs, "app/content")).toBe("app");
    expect(second.config).toEqual(first.config);
  });

  test("the linux/amd64 part of a list of several platforms", async () => {
    const amd64 = await makeLayout(folder, "amd64");
    const arm64 = await makeLayout(folder, "arm64", { architecture: "arm64" });
    const list = await makeList(folder, "list", { arm64, amd64 });
    const image = await store.ensure(`oci:${list}`);
    expect(await readRootfs(image.rootfs, "app/content")).toBe("amd64");
    expect(image.digest).toBe((await store.ensure(`oci:${amd64}:latest`)).digest);
  });

  test.runIf(isRoot && nobodyReaches)("images whose files nobody may read, without root", async () => {
    const layout = await makeLayout(folder, "app");
    const own = join(folder, "own");
    await mkdir(own);
    chmodSync(folder, 0o755);
    execFileSync("chmod", ["-R", "a+rX", layout]);
    chownSync(own, NOBODY, NOBODY);
    const rootfs = await runAsNobody<string>({
      imports: [join(import.meta.dirname, "../src/open.ts")],
      code: `
        const [{ openImageStore }] = modules;
        const store = await openImageStore({ dataDir: ${JSON.stringify(own)} });
        return (await store.ensure(${JSON.stringify(`oci:${layout}:latest`)})).rootfs;`,
      cwd: own,
    });
    const files = (await listRootfs(rootfs)).join("\n");
    expect(files).toMatch(/^---s--x--x 0\/0 .*program$/m);
    expect(files).toMatch(/^-rw-r--r-- 1000\/1000 .*content$/m);
    expect(await readRootfs(rootfs, "app/program")).toBe("#!/bin/sh\n");
    expect(await leftovers(own)).toEqual([]);
  });
});

describe("the cache", () => {
  test("imports once, finds by digest, and survives a restart", async () => {
    const layout = await makeLayout(folder, "app");
    const image = await store.ensure(`oci:${layout}:latest`);
    const file = await archive(layout, "same.tar");
    const again = await openImageStore({ dataDir, tools: { sqfstar: "/nowhere" } });
    expect(await again.ensure(`oci-archive:${file}`)).toEqual({ ...image, ref: `oci-archive:${file}` });
    expect(await again.get(image.digest)).toEqual({ ...image, ref: image.digest });
    expect(await again.get(`sha256:${"0".repeat(64)}`)).toBeUndefined();
    expect(await again.get("../../etc/passwd")).toBeUndefined();
  });

  test("a pinned reference needs no source while the image is there, and refuses a source that changed", async () => {
    const layout = await makeLayout(folder, "app");
    const file = await archive(layout, "app.tar");
    const { digest } = await store.ensure(`oci-archive:${file}`);
    const ref = pinned(`oci-archive:${file}`, digest);
    await rm(file);
    expect(await store.ensure(ref)).toMatchObject({ ref, digest });
    await cp(await archive(await makeLayout(folder, "other"), "other.tar"), file);
    expect(await store.ensure(ref)).toMatchObject({ digest });
    await store.collect(() => new Set());
    await expect(store.ensure(ref)).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringMatching(
        /has changed: it is sha256:\w{64} now, not sha256:\w{64}\. Put the old image back/,
      ),
    });
  });

  test("builds once for many callers at the same time", async () => {
    const layout = await makeLayout(folder, "app");
    const count = join(folder, "count");
    const sqfstar = await makeTool(folder, "sqfstar", `echo run >> ${count}; exec sqfstar "$@"`);
    const counting = await openImageStore({ dataDir, tools: { sqfstar } });
    const copy = join(folder, "copy");
    await cp(layout, copy, { recursive: true });
    const refs = [...Array(5).fill(`oci:${layout}:latest`), ...Array(5).fill(`oci:${copy}:latest`)];
    const images = await Promise.all(refs.map((ref) => counting.ensure(ref)));
    expect(new Set(images.map(({ digest }) => digest)).size).toBe(1);
    expect(images.map(({ ref }) => ref)).toEqual(refs);
    expect(await readFile(count, "utf8")).toBe("run\n");
  });

  test("builds a damaged image again", async () => {
    const ref = `oci:${await makeLayout(folder, "app")}:latest`;
    const image = await store.ensure(ref);
    await truncate(image.rootfs, 10);
    expect(await store.get(image.digest)).toBeUndefined();
    expect(await store.ensure(ref)).toEqual(image);
    await writeFile(join(image.rootfs, "../image.json"), "null");
    expect(await store.ensure(ref)).toEqual(image);
    expect(await readRootfs(image.rootfs, "app/content")).toBe("app");
  });

  test("deletes what is not in use", async () => {
    const one = await store.ensure(`oci:${await makeLayout(folder, "one")}`);
    const two = await store.ensure(`oci:${await makeLayout(folder, "two")}`);
    expect(await store.collect(() => new Set([one.digest, two.digest]))).toEqual([]);
    expect(await store.collect(() => new Set([one.digest]))).toEqual([two.digest]);
    expect(await store.get(two.digest)).toBeUndefined();
    expect(await store.get(one.digest)).toEqual({ ...one, ref: one.digest });
  });

  test("deletes what a killed import left, but nothing of a running one", async () => {
    const layout = await makeLayout(folder, "app");
    const left = join(dataDir, "images/tmp-left");
    await mkdir(join(left, "rootfs/locked"), { recursive: true });
    await makeOlder(left);
    const sqfstar = await makeTool(folder, "sqfstar", `touch ${folder}/unpacking; sleep 0.3; exec sqfstar "$@"`);
    const slow = await openImageStore({ dataDir, tools: { sqfstar } });
    const ensured = slow.ensure(`oci:${layout}`);
    await expect.poll(() => readdir(folder), { timeout: 5000 }).toContain("unpacking");
    expect(await leftovers(dataDir)).toHaveLength(2);
    expect(await slow.collect(() => new Set())).toEqual([]);
    expect(await leftovers(dataDir)).toHaveLength(1);
    expect(await readRootfs((await ensured).rootfs, "app/content")).toBe("app");
  });
});

describe("kill -9 of the platform in the middle", () => {
  test("ends the tools, publishes nothing, and leaves only what the next start deletes", async () => {
    const layout = await makeLayout(folder, "app");
    const sqfstar = await makeTool(folder, "sqfstar", `echo $$ > ${folder}/pid; exec sleep 60`);
    const index = join(import.meta.dirname, "../src/open.ts");
    const script = `const { openImageStore } = await import(${JSON.stringify(index)});
      const store = await openImageStore(${JSON.stringify({ dataDir, tools: { sqfstar } })});
      await store.ensure(${JSON.stringify(`oci:${layout}`)});`;
    const platform = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: "ignore" });
    await expect.poll(() => readFile(join(folder, "pid"), "utf8").catch(() => ""), { timeout: 10_000 }).toMatch(/\d\n/);
    platform.kill("SIGKILL");
    const pid = Number(await readFile(join(folder, "pid"), "utf8"));
    await expect.poll(() => commandOf(pid)).toBe("");
    const [left = ""] = await leftovers(dataDir);
    await makeOlder(join(dataDir, "images", left));
    const next = await openImageStore({ dataDir });
    expect(await next.collect(() => new Set())).toEqual([]);
    expect(await readdir(join(dataDir, "images"))).toEqual([]);
  });
});

describe("failures", () => {
  test("a missing file or directory is not_found, and the error names it", async () => {
    for (const ref of [`oci-archive:${folder}/no.tar`, `docker-archive:${folder}/no.tar`, `oci:${folder}/no`])
      await expect(store.ensure(ref)).rejects.toMatchObject({
        code: "not_found",
        message: expect.stringContaining(`${folder}/no`),
      });
    await expect(store.ensure("oci-archive:no-such.tar")).rejects.toMatchObject({
      details: { path: join(process.cwd(), "no-such.tar") },
    });
  });

  test("a name that is not in the file is not_found", async () => {
    const layout = await makeLayout(folder, "app");
    const docker = await archive(layout, "docker.tar", "docker-archive");
    for (const ref of [`oci:${layout}:other`, `docker-archive:${docker}:other:1`, `docker-archive:${docker}:@7`])
      await expect(store.ensure(ref)).rejects.toMatchObject({ code: "not_found" });
  });

  test("several images without a name are invalid_argument, and the error asks for a name", async () => {
    const layout = await makeLayout(folder, "app");
    await skopeo("copy", "-q", `oci:${layout}:latest`, `oci:${layout}:second`);
    await expect(store.ensure(`oci:${layout}`)).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("adding :NAME"),
    });
  });

  test("a corrupt or truncated archive is invalid_argument with the tool's reason", async () => {
    const layout = await makeLayout(folder, "app");
    const oci = await archive(layout, "oci.tar");
    await truncate(oci, 1000);
    await writeFile(join(folder, "noise.tar"), "noise".repeat(1000));
    for (const ref of [`oci-archive:${oci}`, `oci-archive:${folder}/noise.tar`, `docker-archive:${folder}/noise.tar`])
      await expect(store.ensure(ref)).rejects.toMatchObject({
        code: "invalid_argument",
        // Without decoration, in one line, and without the name of a temporary file.
        message: expect.stringMatching(/^(?!.*(?:level=fatal|tmp-)).*cannot be read: .*(?:EOF|tar).*$/),
      });
  });

  test("another architecture is refused, alone and in a list, and the error names it", async () => {
    const arm64 = await makeLayout(folder, "arm64", { architecture: "arm64" });
    const list = await makeList(folder, "list", { arm64 });
    for (const ref of [`oci:${arm64}`, `oci:${list}`])
      await expect(store.ensure(ref)).rejects.toMatchObject({
        code: "invalid_argument",
        message: expect.stringContaining("is for linux/arm64; machines run linux/amd64"),
      });
  });

  test("a directory in place of an archive, and a file in place of a layout, are refused", async () => {
    const layout = await makeLayout(folder, "app");
    const file = await archive(layout, "oci.tar");
    await expect(store.ensure(`oci-archive:${layout}`)).rejects.toThrow("write oci:");
    await expect(store.ensure(`oci:${file}`)).rejects.toThrow("write oci-archive:");
    await expect(store.ensure("oci-archive:/dev/zero")).rejects.toThrow("not a regular file");
  });

  test("a missing tool, a full disk and a registry that is down are unavailable", async () => {
    const ref = `oci:${await makeLayout(folder, "app")}`;
    const missing = await openImageStore({ dataDir, tools: { sqfstar: "/nowhere/sqfstar" } });
    await expect(missing.ensure(ref)).rejects.toMatchObject({
      code: "unavailable",
      details: { tool: "/nowhere/sqfstar" },
    });
    const sqfstar = await makeTool(
      folder,
      "sqfstar",
      "echo Write failed because No space left on device >&2; echo FATAL ERROR >&2; exit 1",
    );
    const full = await openImageStore({ dataDir, tools: { sqfstar } });
    await expect(full.ensure(ref)).rejects.toThrow("disk of the data directory is full");
    await expect(store.ensure("127.0.0.1:1/app:1")).rejects.toMatchObject({
      code: "unavailable",
      details: { registry: "127.0.0.1:1" },
    });
  });

  test("a tool that floods its output is stopped", async () => {
    const flood = await makeTool(folder, "skopeo", "exec yes");
    const flooded = await openImageStore({ dataDir, tools: { skopeo: flood } });
    await expect(flooded.ensure(`oci:${await makeLayout(folder, "app")}`)).rejects.toThrow("more than 4 MiB");
  });

  test("an archive that is replaced while it is read is not stored under the old digest", async () => {
    const layout = await makeLayout(folder, "app");
    const other = await makeLayout(folder, "other");
    const swap = `case "$*" in *" copy "*) cp ${other}/index.json ${layout}/index.json; cp -r ${other}/blobs ${layout};; esac`;
    const tool = await makeTool(folder, "skopeo", `${swap}; exec skopeo "$@"`);
    const swapping = await openImageStore({ dataDir, tools: { skopeo: tool } });
    await expect(swapping.ensure(`oci:${layout}`)).rejects.toMatchObject({ code: "aborted" });
  });
});

describe("a cancelled import", () => {
  test("stops the tools and leaves nothing behind", async () => {
    const layout = await makeLayout(folder, "app");
    const sqfstar = await makeTool(folder, "sqfstar", `echo $$ > ${folder}/pid; exec sleep 60`);
    const slow = await openImageStore({ dataDir, tools: { sqfstar } });
    const abort = new AbortController();
    const ensured = slow.ensure(`oci:${layout}`, { signal: abort.signal });
    await expect.poll(() => readdir(folder), { timeout: 5000 }).toContain("pid");
    abort.abort();
    await expect(ensured).rejects.toMatchObject({ code: "aborted" });
    const pid = Number(await readFile(join(folder, "pid"), "utf8"));
    await expect.poll(() => commandOf(pid)).toBe("");
  });

  test("does not disturb other callers", async () => {
    const layout = await makeLayout(folder, "app");
    const sqfstar = await makeTool(folder, "sqfstar", `touch ${folder}/started; sleep 0.3; exec sqfstar "$@"`);
    const slow = await openImageStore({ dataDir, tools: { sqfstar } });
    const abort = new AbortController();
    const leaving = slow.ensure(`oci:${layout}`, { signal: abort.signal });
    const staying = slow.ensure(`oci:${layout}`);
    await expect.poll(() => readdir(folder), { timeout: 5000 }).toContain("started");
    abort.abort();
    await expect(leaving).rejects.toMatchObject({ code: "aborted" });
    expect((await staying).config.user).toBe("app");
  });

  test("does nothing when it has not started yet", async () => {
    const layout = await makeLayout(folder, "app");
    await expect(store.ensure(`oci:${layout}`, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: "aborted",
    });
    await rm(layout, { recursive: true });
  });
});
