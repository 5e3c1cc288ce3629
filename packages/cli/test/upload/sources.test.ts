// What the CLI reads from images on its own machine, compared with what skopeo, which the platform uses, makes of them.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFile, cp, mkdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import type { ImageSource } from "@hibernaut/client";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { addLayer, makeLayout, makeList, skopeo, temporaryFolder } from "../../../images/test/fixtures.ts";
import { longOr } from "../../../platform/test/helpers/long.ts";
import { formatLocal, localImage, uploadName } from "../../src/upload/reference.ts";
import { withSource } from "../../src/upload/source.ts";

const run = promisify(execFile);
const digestOf = (content: string | Buffer) => `sha256:${createHash("sha256").update(content).digest("hex")}`;

let folder: string;
let layout: string;
let docker: string;
let dispose: () => Promise<void>;

beforeAll(async () => {
  const temporary = await temporaryFolder();
  folder = temporary.path;
  dispose = () => temporary.dispose();
  layout = await makeLayout(folder, "shop");
  await addLayer(folder, layout, "big", 200_000);
  docker = join(folder, "shop-docker.tar");
  await skopeo("copy", "--quiet", `oci:${layout}:latest`, `docker-archive:${docker}:me/shop:v1`);
});
afterAll(() => dispose());

function open<T>(ref: string, work: (source: ImageSource) => Promise<T>): Promise<T> {
  const image = localImage(ref);
  if (image === undefined) throw new Error(`${ref} is not local`);
  return withSource(image, new AbortController().signal, work);
}

/** Reads every part from several places on, and returns the manifest's digest. */
async function check(source: ImageSource): Promise<string> {
  const { config, layers } = JSON.parse(source.manifest) as Record<"config", Part> & Record<"layers", Part[]>;
  for (const { digest, size } of [config, ...layers]) {
    const whole = await bytes(source, digest, 0);
    expect(digestOf(whole)).toBe(digest);
    expect(whole.length).toBe(size);
    for (const offset of [1, Math.floor(size / 2), size - 1, size])
      expect((await bytes(source, digest, offset)).equals(whole.subarray(offset)), `from ${offset}`).toBe(true);
  }
  return digestOf(source.manifest);
}

interface Part {
  digest: string;
  size: number;
}

async function bytes(source: ImageSource, digest: string, offset: number): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(source.read(digest, offset)));
}

/** What the platform would store the image under if it read the file itself. */
async function skopeoDigest(ref: string): Promise<string> {
  return digestOf(await skopeo("inspect", "--raw", ref));
}

test("layouts and archives have the digest that the platform gives them, and every byte of their parts", async () => {
  const archive = join(folder, "shop-oci.tar");
  await skopeo("copy", "--quiet", `oci:${layout}:latest`, `oci-archive:${archive}:v1`);
  for (const ref of [`oci:${layout}`, `oci:${layout}:latest`, `oci-archive:${archive}`, `docker-archive:${docker}`])
    expect(await open(ref, check), ref).toBe(await skopeoDigest(ref));
});

test("a docker archive with compressed layers, links and long names, compressed as a whole, is the same image", async () => {
  const unpacked = join(folder, "unpacked");
  await mkdir(unpacked);
  await run("tar", ["-xf", docker, "-C", unpacked]);
  const [image] = JSON.parse(await readFile(join(unpacked, "manifest.json"), "utf8"));
  const long = "layer-with-a-name-that-does-not-fit-".repeat(6);
  const names = image.Layers.map((_: string, index: number) => `${long}${index}/layer.tar`);
  for (const [index, name] of names.entries()) {
    await mkdir(join(unpacked, name, ".."));
    // The first is a link to a file, as old versions of Docker write it; the other is compressed, as new ones do.
    const layer = await readFile(join(unpacked, image.Layers[index]));
    if (index > 0) await writeFile(join(unpacked, name), gzipSync(layer));
    else await run("ln", ["-s", `../${image.Layers[0]}`, join(unpacked, name)]);
  }
  await writeFile(join(unpacked, "manifest.json"), JSON.stringify([{ ...image, Layers: names }]));
  for (const format of ["gnu", "pax"]) {
    const repacked = join(folder, `${format}.tar.gz`);
    await run("tar", ["-czf", repacked, "--format", format, "-C", unpacked, "."]);
    expect(await open(`docker-archive:${repacked}`, check), format).toBe(
      await skopeoDigest(`docker-archive:${docker}`),
    );
  }
});

test("of a multi-platform image, the one for linux/amd64 is read", async () => {
  const foreign = await makeLayout(folder, "foreign", { architecture: "arm64" });
  const list = await makeList(folder, "list", { arm64: foreign, amd64: layout });
  expect(await open(`oci:${list}`, check)).toBe(await skopeoDigest(`oci:${layout}`));
  const only = await makeList(folder, "only-arm", { arm64: foreign });
  await expect(open(`oci:${only}`, check)).rejects.toThrow("it is for linux/arm64; machines run linux/amd64");
});

test("of several images, one has to be chosen, by its name or its place", async () => {
  const both = join(folder, "both");
  await cp(layout, both, { recursive: true });
  await skopeo("copy", "--quiet", `oci:${await makeLayout(folder, "blog")}:latest`, `oci:${both}:blog`);
  await expect(open(`oci:${both}`, check)).rejects.toThrow("it contains several images. It contains latest, blog.");
  expect(await open(`oci:${both}:blog`, check)).toBe(await skopeoDigest(`oci:${both}:blog`));
  expect(await open(`oci:${both}:@0`, check)).toBe(await skopeoDigest(`oci:${layout}`));
  await expect(open(`oci:${both}:shop`, check)).rejects.toThrow("There is no image shop in");
  for (const name of ["me/shop:v1", "docker.io/me/shop:v1", "@0"])
    expect(await open(`docker-archive:${docker}:${name}`, check)).toBe(await skopeoDigest(`docker-archive:${docker}`));
  await expect(open(`docker-archive:${docker}:me/shop:v2`, check)).rejects.toThrow("It contains docker.io/me/shop:v1");
});

test("a digest in the reference is what the image must have", async () => {
  const digest = await skopeoDigest(`oci:${layout}`);
  expect(await open(`oci:${layout}@${digest}`, check)).toBe(digest);
  const other = digestOf("another");
  await expect(open(`oci:${layout}@${other}`, check)).rejects.toThrow(`is ${digest} now, not ${other}`);
});

describe("what cannot be read is explained", () => {
  test("a file that is not there, of another kind, or no archive", async () => {
    await expect(open(`oci:${folder}/none`, check)).rejects.toThrow("add --no-upload");
    await expect(open(`docker-archive:${layout}`, check)).rejects.toThrow("There is no file");
    await expect(open(`oci-archive:${docker}`, check)).rejects.toThrow("docker-archive: for docker save");
    const text = join(folder, "text.tar");
    await writeFile(text, "not an archive ".repeat(100));
    await expect(open(`docker-archive:${text}`, check)).rejects.toThrow("it is not a tar file, or damaged");
    await writeFile(text, Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0]));
    await expect(open(`docker-archive:${text}`, check)).rejects.toThrow("compressed with xz. Unpack it first (unxz)");
    await writeFile(text, "");
    await expect(open(`docker-archive:${text}`, check)).rejects.toThrow("There is no manifest.json in");
  });

  test("an archive that was cut off anywhere, or changed anywhere, is refused or is the whole image", async () => {
    const whole = await readFile(docker);
    const damaged = join(folder, "damaged.tar");
    const digest = await skopeoDigest(`docker-archive:${docker}`);
    const attempt = () => open(`docker-archive:${damaged}`, async ({ manifest }) => digestOf(manifest));
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), fc.boolean(), async (at, cut) => {
        await writeFile(damaged, whole);
        if (cut) await truncate(damaged, at);
        else await writeFile(damaged, Buffer.concat([whole.subarray(0, at), Buffer.from([7]), whole.subarray(at + 1)]));
        // A change within a layer is found by the platform, which checks each layer's digest.
        const end = await attempt().catch((error: unknown) => error);
        if (typeof end !== "string") expect(end).toMatchObject({ name: "CliError" });
        else if (cut) expect(end).toBe(digest);
      }),
      { numRuns: longOr(400, 15) },
    );
    await rm(damaged);
  });

  test("the head of each entry is read, whatever follows the archive", async () => {
    const longer = join(folder, "longer.tar");
    await cp(docker, longer);
    await appendFile(longer, Buffer.alloc(10_240));
    expect(await open(`docker-archive:${longer}`, check)).toBe(await skopeoDigest(`docker-archive:${docker}`));
  });
});

test.each([
  ["docker-archive:./x.tar", { kind: "docker-archive", path: "./x.tar", name: "" }],
  ["oci:/srv/x:me/shop:v1", { kind: "oci", path: "/srv/x", name: "me/shop:v1" }],
  ["docker-daemon:shop:latest", { kind: "docker-daemon", path: "shop:latest", name: "" }],
  [`oci:x:y@${digestOf("z")}`, { kind: "oci", path: "x", name: "y", digest: digestOf("z") }],
] as const)("%s is local", (ref, parts) => {
  const image = localImage(ref);
  expect(image).toMatchObject(parts);
  expect(image && formatLocal(image)).toBe(ref);
});

test.each(["redis:7", "ghcr.io/me/oci:latest", `upload:shop@${digestOf("z")}`, "oci:", "docker://x"])(
  "%s is not local",
  (ref) => expect(localImage(ref)).toBeUndefined(),
);

test("an uploaded image is named after itself, or after its file", () => {
  expect(uploadName(["docker.io/library/shop:v1"], "/x.tar")).toBe("shop:v1");
  expect(uploadName([undefined, "host:5000/me/shop:v1"], "/x.tar")).toBe("host:5000/me/shop:v1");
  expect(uploadName(["UPPER", "a b"], "/srv/My Shop (2).tar.gz")).toBe("my-shop-2");
  expect(uploadName([], "/srv/shop/")).toBe("shop");
  expect(uploadName([], "/…")).toBe("image");
});
