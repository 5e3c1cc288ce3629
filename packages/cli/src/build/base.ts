/** The lowest layer of an image: a runtime of this host with its libraries, a shell, users and certificates. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, link, mkdir, readdir, readFile, realpath, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { complete, directory, MODES, textFile } from "./entries.ts";
import { type Layer, type LayerEntry, writeLayer } from "./layer.ts";
import { librariesOf } from "./libraries.ts";

/** What a base has in addition to the shell. */
export interface BaseParts {
  /** Part of the name of its cache. */
  name: string;
  /** Programs and modules of this host: path in the image, without the leading slash, to path here. */
  programs: Record<string, string>;
  /** More files, which need no libraries. */
  files?: LayerEntry[];
}

/** Bases are shared by all builds: one for each version of a runtime that is in use. */
const BASES_KEPT = 4;
const CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt";
const PASSWD = "root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000:app:/app:/bin/sh\n";
const GROUP = "root:x:0:\napp:x:1000:\n";
const DIRECTORIES = ["app", "dev", "etc", "proc", "root", "run", "sys", "usr/local/bin", "var"];
/** Start scripts are written for a shell, and the programs of packages begin with `#!/usr/bin/env`. */
const SHELL = { "bin/sh": "/bin/sh", "usr/bin/env": "/usr/bin/env" };

/** Puts the base into a directory of blobs, and packs it if that has not been done for the same files. */
export async function addBase(
  cache: string,
  blobs: string,
  { parts, signal }: { parts: BaseParts; signal: AbortSignal },
): Promise<Layer> {
  const entries = await entriesOf(parts);
  const folder = join(cache, `${parts.name}-${await fingerprintOf(entries)}`);
  const record = join(folder, "layer.json");
  if (!existsSync(record)) {
    await rm(folder, { recursive: true, force: true });
    const made = await writeLayer(folder, entries, signal);
    await writeFile(record, JSON.stringify(made));
    await prune(cache);
  }
  const layer = JSON.parse(await readFile(record, "utf8")) as Layer;
  const hex = layer.digest.slice("sha256:".length);
  await utimes(folder, new Date(), new Date());
  await mkdir(blobs, { recursive: true });
  if (!existsSync(join(blobs, hex))) await linkOrCopy(join(folder, hex), join(blobs, hex));
  return layer;
}

async function entriesOf({ programs, files = [] }: BaseParts): Promise<LayerEntry[]> {
  const all = Object.entries({ ...SHELL, ...programs });
  const found = await Promise.all(all.map(async ([to, from]) => ({ to, from: await realpath(from) })));
  const libraries = await librariesOf(found.map(({ from }) => from));
  const packed = [...found, ...libraries.map(({ from, to }) => ({ from, to: to.slice(1) }))];
  const entries = await Promise.all(packed.map(({ from, to }) => hostFile(from, to, MODES.program)));
  return complete([
    ...DIRECTORIES.map((path) => directory(path)),
    directory("tmp", { mode: 0o1777 }),
    textFile("etc/passwd", PASSWD),
    textFile("etc/group", GROUP),
    ...(existsSync(CERTIFICATES) ? [await hostFile(CERTIFICATES, CERTIFICATES.slice(1), MODES.file)] : []),
    ...files,
    ...entries,
  ]);
}

async function hostFile(from: string, path: string, mode: number): Promise<LayerEntry> {
  const { size } = await stat(from);
  return { kind: "file", path, mode, owner: 0, size, from };
}

/** Files of the host count by size and time, because reading them takes longer than everything else in a build. */
async function fingerprintOf(entries: readonly LayerEntry[]): Promise<string> {
  const hash = createHash("sha256");
  for (const { kind, path, mode, size, from, content } of entries) {
    const time = from === undefined ? "" : (await stat(from)).mtimeMs;
    hash.update(`${kind} ${path} ${mode} ${size} ${from ?? ""} ${time}\n`).update(content ?? "");
  }
  return hash.digest("hex").slice(0, 16);
}

async function prune(cache: string): Promise<void> {
  const names = (await readdir(cache)).map((name) => join(cache, name));
  const used = await Promise.all(names.map(async (path) => ({ path, at: (await stat(path)).mtimeMs })));
  for (const { path } of used.toSorted((a, b) => b.at - a.at).slice(BASES_KEPT))
    await rm(path, { recursive: true, force: true });
}

/** Copies where the two directories are on different file systems. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  await link(from, to).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "EXDEV") throw error;
    await copyFile(from, to);
  });
}
