import { execFile } from "node:child_process";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { mmdebstrapArguments } from "../src/base/arguments.ts";
import { buildBase } from "../src/base/build.ts";
import { baseDocuments, blobPath } from "../src/base/image.ts";
import { distributionOf, sourceLines } from "../src/base/sources.ts";

const run = promisify(execFile);
const BOOKWORM = { id: "debian", suite: "bookworm" };
const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";
const LAYER = { digest: `sha256:${"a".repeat(64)}`, bytes: 1024 };
const QUIET = { onLine: () => {}, signal: new AbortController().signal };

/** A program in place of mmdebstrap. */
async function fakeProgram(folder: string, script: string): Promise<string> {
  const program = join(folder, "mmdebstrap");
  await writeFile(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return program;
}

test("knows Debian and Ubuntu, and takes Debian's stable on other hosts", () => {
  expect(distributionOf('ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n')).toEqual(BOOKWORM);
  expect(distributionOf('VERSION_CODENAME="noble"\nID="ubuntu"')).toEqual({ id: "ubuntu", suite: "noble" });
  expect(distributionOf("ID=fedora\n")).toEqual({ id: "debian", suite: "stable" });
  expect(distributionOf("ID=linuxmint\nVERSION_CODENAME=wilma\n")).toEqual({ id: "debian", suite: "stable" });
  expect(distributionOf("")).toEqual({ id: "debian", suite: "stable" });
});

test("takes the distribution's own sources from files in both formats", () => {
  const oneLine = [
    "# deb http://old/debian bookworm main",
    "deb http://mirror/debian bookworm main contrib # the nearest",
    `deb [arch=amd64 signed-by=${KEYRING}] https://mirror/security bookworm-security main`,
    "deb-src http://mirror/debian bookworm main",
    "deb http://mirror/debian bookworm-updates main",
    "deb http://mirror/debian trixie main",
    "deb file:/srv/debian bookworm main",
  ].join("\n");
  const deb822 = [
    "Types: deb deb-src",
    "# where it came from",
    "URIs: http://other/debian",
    "Suites: bookworm",
    "  bookworm-updates",
    "Components: main",
    `Signed-By: ${KEYRING}`,
    "",
    "Types: deb\nURIs: http://off/debian\nSuites: bookworm\nComponents: main\nEnabled: no",
  ].join("\n");
  expect(sourceLines({ oneLine: [oneLine], deb822: [deb822] }, BOOKWORM)).toEqual([
    "deb http://mirror/debian bookworm main contrib",
    `deb [signed-by=${KEYRING}] https://mirror/security bookworm-security main`,
    "deb http://mirror/debian bookworm-updates main",
    `deb [signed-by=${KEYRING}] http://other/debian bookworm main`,
    `deb [signed-by=${KEYRING}] http://other/debian bookworm-updates main`,
  ]);
});

test("leaves out the sources of others, and leaves the choice to mmdebstrap when nothing else is there", () => {
  const docker =
    "deb [signed-by=/etc/apt/keyrings/docker.asc] https://download.docker.com/linux/debian bookworm stable";
  const foreign = "deb [signed-by=/usr/share/keyrings/other.gpg] https://other.example/debian bookworm main";
  const cloud = "Types: deb\nURIs: mirror+file:///etc/apt/mirrors/debian.list\nSuites: bookworm\nComponents: main\n";
  const security = "deb http://mirror/security bookworm-security main";
  expect(sourceLines({ oneLine: [docker, foreign, security], deb822: [cloud] }, BOOKWORM)).toEqual([]);
  expect(sourceLines({ oneLine: [], deb822: [] }, BOOKWORM)).toEqual([]);
});

test("has mmdebstrap write a small root file system with a user that may do everything", () => {
  const sources = ["deb http://mirror/debian bookworm main"];
  const args = mmdebstrapArguments({ root: true, distribution: BOOKWORM, sources });
  expect(args).toContain("--mode=root");
  expect(args).toContain("--variant=minbase");
  const include = args.find((argument) => argument.startsWith("--include="))?.slice("--include=".length) ?? "";
  expect(include.split(",")).toEqual(expect.arrayContaining(["bash", "curl", "git", "nodejs", "python3", "sudo"]));
  expect(args.indexOf("--dpkgopt=path-include=/usr/share/doc/*/copyright")).toBeGreaterThan(
    args.indexOf("--dpkgopt=path-exclude=/usr/share/doc/*"),
  );
  expect(args.join("\n")).toMatch(/useradd --uid 1000 .*--home-dir \/home\/user --shell \/bin\/bash user$/m);
  expect(args.join("\n")).toContain("user ALL=(ALL:ALL) NOPASSWD: ALL");
  expect(args.slice(-3)).toEqual(["bookworm", "-", ...sources]);
});

test("has mmdebstrap use a namespace of users without root", () => {
  const args = mmdebstrapArguments({ root: false, distribution: BOOKWORM, sources: [] });
  expect(args).toContain("--mode=unshare");
  expect(args.slice(-2)).toEqual(["bookworm", "-"]);
});

test("describes an image of one layer, whose documents name each other by digest", () => {
  const { digest, documents } = baseDocuments(LAYER, new Date(0));
  const read = (path: string) => JSON.parse(documents.find((one) => one.path === path)?.text ?? "null");
  expect(read("oci-layout")).toEqual({ imageLayoutVersion: "1.0.0" });
  const [image] = read("index.json").manifests;
  expect(image).toMatchObject({ digest, annotations: { "org.opencontainers.image.ref.name": "base" } });
  const manifest = read(blobPath(digest));
  expect(manifest.layers).toEqual([
    { mediaType: "application/vnd.oci.image.layer.v1.tar", digest: LAYER.digest, size: LAYER.bytes },
  ]);
  expect(read(blobPath(manifest.config.digest))).toEqual({
    created: "1970-01-01T00:00:00.000Z",
    architecture: "amd64",
    os: "linux",
    config: {
      User: "",
      Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"],
      Cmd: ["/bin/sleep", "infinity"],
      WorkingDir: "/home/user",
    },
    rootfs: { type: "layers", diff_ids: [LAYER.digest] },
  });
});

test("puts what mmdebstrap writes into an archive, and leaves nothing else", async () => {
  const folder = await tempFolder("base");
  const program = await fakeProgram(folder, "echo 'I: working' >&2; echo layer");
  const lines: string[] = [];
  const out = join(folder, "images/base.tar");
  const built = await buildBase({ ...QUIET, out, program, onLine: (line) => lines.push(line) });
  expect(built.bytes).toBe((await stat(out)).size);
  expect(lines[0]).toBe("I: working");
  expect(await readdir(join(folder, "images"))).toEqual(["base.tar"]);
  await run("tar", ["--extract", `--file=${out}`, `--directory=${folder}`]);
  const manifest = JSON.parse(await readFile(join(folder, blobPath(built.digest)), "utf8"));
  expect(await readFile(join(folder, blobPath(manifest.layers[0].digest)), "utf8")).toBe("layer\n");
});

test("says what is missing, and keeps the archive that is there", async () => {
  const folder = await tempFolder("base");
  const out = join(folder, "base.tar");
  await writeFile(out, "old");
  const building = buildBase({ ...QUIET, out, program: join(folder, "none") });
  await expect(building).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringContaining("Install mmdebstrap"),
  });
  expect(await readdir(folder)).toEqual(["base.tar"]);
  expect(await readFile(out, "utf8")).toBe("old");
});

test("says the last lines of mmdebstrap when that fails", async () => {
  const folder = await tempFolder("base");
  const program = await fakeProgram(folder, "echo part; seq 20 >&2; echo 'E: no mirror' >&2; exit 25");
  const building = buildBase({ ...QUIET, out: join(folder, "base.tar"), program });
  await expect(building).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringMatching(/exit code 25[^]*\n {2}14\n[^]*\n {2}E: no mirror$/),
  });
  expect(await readdir(folder)).toEqual(["mmdebstrap"]);
});

test("ends mmdebstrap and all that it started when the build is aborted", async () => {
  const folder = await tempFolder("base");
  const program = await fakeProgram(folder, "echo ready >&2; sleep 1000; echo never");
  const abort = new AbortController();
  const reason = new Error("enough");
  const onLine = () => abort.abort(reason);
  const building = buildBase({ out: join(folder, "base.tar"), program, signal: abort.signal, onLine });
  await expect(building).rejects.toBe(reason);
  expect(await readdir(folder)).toEqual(["mmdebstrap"]);
});
