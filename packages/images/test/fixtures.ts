/** Small images made with the real tools, for the tests of the image store. */
import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { chmod, chown, cp, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

export { openTempFolder as temporaryFolder } from "../../platform/test/helpers/temp.ts";

const run = promisify(execFile);

/** Tests run as root and as other users, but only root can keep the owners of files. */
export const isRoot = process.getuid?.() === 0;

export async function skopeo(...args: string[]): Promise<string> {
  return (await run("skopeo", ["--insecure-policy", ...args])).stdout;
}

/**
 * Makes an OCI layout `<folder>/<name>` with the image `latest`: a few files of several owners and
 * modes. `content` makes one image differ from another.
 */
export async function makeLayout(
  folder: string,
  name: string,
  { architecture = "amd64", content = name } = {},
): Promise<string> {
  const root = join(folder, `${name}-root`);
  const layout = join(folder, name);
  await mkdir(join(root, "app"), { recursive: true });
  await mkdir(join(root, "locked"));
  await writeFile(join(root, "app/content"), content);
  await writeFile(join(root, "app/program"), "#!/bin/sh\n");
  await chmod(join(root, "app/program"), 0o4111);
  await writeFile(join(root, "locked/file"), "");
  await chmod(join(root, "locked"), 0o555);
  await symlink("/app/content", join(root, "link"));
  if (isRoot) await chown(join(root, "app/content"), 1000, 1000);
  const image = ["--image", `${layout}:latest`];
  await run("umoci", ["init", "--layout", layout]);
  await run("umoci", ["new", ...image]);
  await run("umoci", ["insert", ...(isRoot ? [] : ["--rootless"]), ...image, root, "/"]);
  const config = ["--config.user=app", "--config.entrypoint=/app/program", "--config.cmd=serve", "--config.env=A=b c"];
  const more = [
    "--config.workingdir=/app",
    "--config.stopsignal=SIGINT",
    "--os=linux",
    `--architecture=${architecture}`,
  ];
  await run("umoci", ["config", ...image, ...config, ...more]);
  await chmod(join(root, "locked"), 0o755);
  await rm(root, { recursive: true });
  return layout;
}

/** Adds a layer with a file of random bytes, which cannot be compressed, to a layout's image. */
export async function addLayer(folder: string, layout: string, file: string, bytes: number): Promise<void> {
  const source = join(folder, `${file}.random`);
  await writeFile(source, randomBytes(bytes));
  const image = ["--image", `${layout}:latest`];
  await run("umoci", ["insert", ...(isRoot ? [] : ["--rootless"]), ...image, source, `/${file}`]);
  await rm(source);
}

/** Puts several layouts' images into one list of manifests, as a multi-platform build does. */
export async function makeList(folder: string, name: string, layouts: Record<string, string>): Promise<string> {
  const list = join(folder, name);
  const manifests = [];
  for (const [architecture, layout] of Object.entries(layouts)) {
    await cp(layout, list, { recursive: true });
    const [descriptor] = JSON.parse(await readFile(join(layout, "index.json"), "utf8")).manifests;
    manifests.push({ ...descriptor, annotations: undefined, platform: { os: "linux", architecture } });
  }
  const mediaType = "application/vnd.oci.image.index.v1+json";
  const text = JSON.stringify({ schemaVersion: 2, mediaType, manifests });
  const hex = createHash("sha256").update(text).digest("hex");
  await writeFile(join(list, "blobs/sha256", hex), text);
  const entry = { mediaType, digest: `sha256:${hex}`, size: text.length };
  await writeFile(join(list, "index.json"), JSON.stringify({ schemaVersion: 2, manifests: [entry] }));
  return list;
}

/** The lines of `unsquashfs -lln`: mode, owner, size, date, path. */
export async function listRootfs(rootfs: string): Promise<string[]> {
  return (await run("unsquashfs", ["-lln", rootfs])).stdout
    .split("\n")
    .filter((line) => line.includes("squashfs-root"));
}

/** A file of a root file system. */
export async function readRootfs(rootfs: string, path: string): Promise<string> {
  return (await run("unsquashfs", ["-cat", rootfs, path])).stdout;
}

/** Names in the store's directory that are neither images nor the layers of registries. */
export async function leftovers(dataDir: string): Promise<string[]> {
  return (await readdir(join(dataDir, "images"))).filter((name) => !/^(?:[0-9a-f]{64}|blobs)$/.test(name));
}

/** A program in place of one of the tools: a shell script. */
export async function makeTool(folder: string, name: string, script: string): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return file;
}
