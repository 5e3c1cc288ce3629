/**
 * @module-tag again
 */
// `deploy`, `machine run` and `images push` with an image on the CLI's machine, as users see it.
import { existsSync } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { Library, openImages } from "@hibernaut/images/open";
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { addLayer, makeLayout, makeTool, skopeo, temporaryFolder } from "../../../images/test/fixtures.ts";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { startCli, type TestCli } from "../helpers.ts";
import { throttled } from "./throttled.ts";

const LAYER_BYTES = 8_000_000;
/** The first request of an upload, which may be sent in vain while the platform still receives an earlier one. */
const FIRST_REQUEST_BYTES = 1024 * 1024;
const REF = /upload:me\/shop:v1@sha256:[0-9a-f]{64}/;

let made: Awaited<ReturnType<typeof temporaryFolder>>;
let archive: string;
let dataDir: string;
let library: Library;
let uploads: Awaited<ReturnType<typeof openImages>>["uploads"];
let cli: TestCli;

beforeAll(async () => {
  made = await temporaryFolder();
  const layout = await makeLayout(made.path, "shop");
  await addLayer(made.path, layout, "big", LAYER_BYTES);
  archive = join(made.path, "shop.tar");
  await skopeo("copy", "--quiet", `oci:${layout}:latest`, `docker-archive:${archive}:me/shop:v1`);
});
afterAll(() => made[Symbol.asyncDispose]());

beforeEach(async () => {
  dataDir = await tempFolder("push");
  const opened = await openImages({ dataDir });
  const { images } = opened;
  uploads = opened.uploads;
  library = new Library({ images, inUse: () => new Set(), keepMs: 0, onFault: () => {} });
  cli = await startCli({ images: library, uploads });
});
afterEach(() => cli.close());

test("an image is pushed, named, and not sent a second time", async () => {
  const first = await cli.hibernaut(`images push docker-archive:${archive}`);
  expect(first).toMatchObject({ code: 0, stdout: expect.stringMatching(REF) });
  expect(first.stderr).toMatch(/^Preparing docker-archive:.*\nUploading \d+%.*\n(Uploading .*\n)*Unpacking\.\.\.\n/);
  const second = await cli.json(`images push docker-archive:${archive}`);
  expect(second.document).toMatchObject({ ref: expect.stringMatching(REF), size_bytes: expect.any(Number) });
  const again = await cli.hibernaut(`images push docker-archive:${archive}`);
  expect(again.stderr.match(/^Layer [0-9a-f]{12} \(\d.*MB\) is already there\.$/gm)).toHaveLength(2);
  expect((await cli.hibernaut("images uploads")).stdout).toBe("No uploads.\n");
  expect(await cli.hibernaut("images push redis:7")).toMatchObject({ code: 2 });
});

test("a deploy uploads if it is told to, and its machines and its release have the reference of the upload", async () => {
  const deploy = async (options: string) => {
    const file = 'app = "shop"\n[http_service]\n  internal_port = 8080\n';
    const { code, stdout, stderr } = await cli.deploy(file, `${options} --json`);
    expect(code, stderr).toBe(0);
    return JSON.parse(stdout);
  };
  const document = await deploy(`--image docker-archive:${archive} --upload`);
  expect(document.image.ref).toMatch(REF);
  const [machine] = (await cli.json("machine list")).document;
  expect(machine.config.image).toBe(document.image.ref);
  const [release] = (await cli.json("releases")).document;
  expect(release.pinned_image).toBe(document.image.ref);
  // A rollback: the reference alone is enough, and so is the same file, which the platform reads itself this time.
  const back = await deploy(`--image ${release.pinned_image}`);
  expect(back).toMatchObject({ machines: [{ action: "kept" }] });
  expect(await cli.json(`machine run docker-archive:${archive} --upload --port 8080`)).toMatchObject({
    code: 0,
    document: { config: { image: document.image.ref } },
  });
});

test("a platform that has no such file, as behind a tunnel, is sent the image", async () => {
  const read = library.pull.bind(library);
  library.pull = async (ref, options) => {
    if (ref.startsWith("upload:")) return read(ref, options);
    throw new HibernautError("not_found", `There is no ${archive}.`, { image: ref, path: archive });
  };
  const run = (option: string) => cli.hibernaut(`machine create docker-archive:${archive} ${option}`);
  expect(await run("--no-upload")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`There is no ${archive}`),
  });
  const { code, stderr } = await run("");
  expect(stderr).toContain("The platform has no such file on its host, so the image is uploaded from this machine.");
  expect(code).toBe(0);
});

test("an image in this machine's Docker is saved to a temporary file, which is gone afterwards", async () => {
  const bin = join(made.path, "bin");
  const temporary = join(made.path, "tmp");
  await Promise.all([mkdir(bin), mkdir(temporary)]);
  await makeTool(
    bin,
    "docker",
    `[ "$1" = save ] && [ "$4" = me/shop:v1 ] && exec cp ${archive} "$3"; echo "No such image" >&2; exit 1`,
  );
  const env = { PATH: `${bin}:${process.env.PATH}`, TMPDIR: temporary };
  const push = (name: string, more: Record<string, string>) => cli.hibernaut(`images push ${name}`, more);
  expect(await push("docker-daemon:me/shop:v1", env)).toMatchObject({ code: 0, stdout: expect.stringMatching(REF) });
  expect(await push("docker-daemon:blog:v1", env)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("docker save failed (No such image)"),
  });
  const none = { PATH: made.path, TMPDIR: temporary };
  expect(await push("docker-daemon:blog:v1", none)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("there is no docker command on this machine"),
  });
  expect(await readdir(temporary)).toEqual([]);
});

test("Ctrl-C leaves nothing behind on this machine, and the same command continues", async () => {
  const line = await throttled(cli.server.url);
  onTestFinished(() => line.close());
  const temporary = join(dataDir, "tmp");
  await mkdir(temporary);
  const env = { HIBERNAUT_API_URL: line.url, TMPDIR: temporary };
  const { child, ended } = cli.begin(`images push docker-archive:${archive}`, env);
  await expect.poll(line.bytes, { timeout: 20_000, interval: 5 }).toBeGreaterThan((LAYER_BYTES * 2) / 3);
  child.kill("SIGINT");
  expect(await ended).toMatchObject({
    code: 130,
    stderr: expect.stringContaining("Run the command again to continue."),
  });
  expect(await readdir(temporary)).toEqual([]);
  line.open();

  // The platform notices a moment later that the client is gone.
  const received = async () => (await uploads.list())[0]?.doneBytes;
  await expect.poll(received, { timeout: 20_000 }).toBeGreaterThan(LAYER_BYTES / 4);
  const [open] = (await cli.json("images uploads")).document;
  const before = line.bytes();
  expect(await cli.hibernaut(`images push docker-archive:${archive}`, env)).toMatchObject({ code: 0 });
  const headers = 50_000;
  const missing = open.size_bytes - open.done_bytes;
  expect(line.bytes() - before).toBeLessThan(missing + FIRST_REQUEST_BYTES + headers);
});

test("to upload and not to upload is refused before anything is done", async () => {
  for (const options of ["--upload --no-upload", "--no-upload --upload"])
    expect(await cli.hibernaut(`machine run docker-archive:${archive} ${options}`)).toMatchObject({
      code: 2,
      stdout: "",
      stderr: "Error: --upload and --no-upload exclude each other. Choose one.\n",
    });
});

test("an upload is canceled by the beginning of its digest", async () => {
  const manifest = JSON.stringify({ config: { digest: `sha256:${"a".repeat(64)}`, size: 5 }, layers: [] });
  const headers = { authorization: `Bearer ${cli.server.token}`, "content-type": "application/json" };
  const body = JSON.stringify({ name: "shop:v9", manifest });
  await fetch(`${cli.server.url}/v1/images/uploads`, { method: "POST", headers, body });
  const { stdout } = await cli.hibernaut("images uploads");
  const [digest = ""] = /[0-9a-f]{12}/.exec(stdout) ?? [];
  expect(stdout).toMatch(/^IMAGE .*\nupload:shop:v9 /);
  expect(await cli.hibernaut("images cancel ffff")).toMatchObject({ code: 1 });
  expect(await cli.hibernaut(`images cancel ${digest}`)).toMatchObject({
    code: 0,
    stdout: "The upload of upload:shop:v9 is canceled.\n",
  });
  expect(existsSync(join(dataDir, "images/blobs/uploads", `${digest}.json`))).toBe(false);
});
