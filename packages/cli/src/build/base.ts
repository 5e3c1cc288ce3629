/** The lowest layer of an image: a runtime of this host with its libraries, a shell, users and certificates. */
import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import {
  copyFile,
  link,
  mkdir,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  utimes,
  writeFile,
} from "node:fs/promises";
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
  /** Where to look for shared libraries first, as in LD_LIBRARY_PATH. */
  libraryPath?: string;
}

/** Bases are shared by all builds: one for each version of a runtime that is in use. */
const BASES_KEPT = 4;
/** In the name of a base that is being packed. */
const DRAFT = ".draft-";
/** Nothing packs a base for this long, in milliseconds: a day. */
const DRAFT_MS = 24 * 3600 * 1000;
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
  const entries = await baseEntries(parts);
  const folder = join(cache, `${parts.name}-${await fingerprintOf(entries)}`);
  const record = join(folder, "layer.json");
  if (!existsSync(record)) {
    await pack(folder, entries, signal);
    await prune(cache);
  }
  const layer = JSON.parse(await readFile(record, "utf8")) as Layer;
  const hex = layer.digest.slice("sha256:".length);
  await utimes(folder, new Date(), new Date());
  await mkdir(blobs, { recursive: true });
  if (!existsSync(join(blobs, hex))) await linkOrCopy(join(folder, hex), join(blobs, hex));
  return layer;
}

/** Another build may pack the same base now: the one that is done first counts. */
async function pack(folder: string, entries: readonly LayerEntry[], signal: AbortSignal): Promise<void> {
  const draft = `${folder}${DRAFT}${randomUUID()}`;
  try {
    const made = await writeLayer(draft, entries, signal);
    await writeFile(join(draft, "layer.json"), JSON.stringify(made));
    await rename(draft, folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** What is in a base: directories above the files, and the libraries of the programs, included. */
export async function baseEntries({
  programs,
  files = [],
  libraryPath,
}: Omit<BaseParts, "name">): Promise<LayerEntry[]> {
  const all = Object.entries({ ...SHELL, ...programs });
  const found = await Promise.all(all.map(async ([to, from]) => ({ to, from: await realpath(from) })));
  const libraries = await librariesOf(
    found.map(({ from }) => from),
    libraryPath,
  );
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

export async function hostFile(from: string, path: string, mode: number): Promise<LayerEntry> {
  const { size } = await stat(from);
  return { kind: "file", path, mode, owner: 0, size, from };
}

/** Files of the host count by size and time, because reading them takes longer than everything else in a build. */
export async function fingerprintOf(entries: readonly LayerEntry[]): Promise<string> {
  const hash = createHash("sha256");
  for (const { kind, path, mode, size, from, content, target } of entries) {
    const time = from === undefined ? "" : (await stat(from)).mtimeMs;
    hash.update(`${kind} ${path} ${mode} ${size} ${from ?? target ?? ""} ${time}\n`).update(content ?? "");
  }
  return hash.digest("hex").slice(0, 16);
}

/** Deletes the bases that were used the longest time ago, and what builds that were killed have left. */
async function prune(cache: string): Promise<void> {
  const found = (await readdir(cache)).map(async (name) => {
    const path = join(cache, name);
    return { path, at: (await stat(path)).mtimeMs, draft: name.includes(DRAFT) };
  });
  // A draft of another build may be gone by now.
  const all = (await Promise.allSettled(found)).flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const bases = all.filter(({ draft }) => !draft).toSorted((a, b) => b.at - a.at);
  const left = all.filter(({ draft, at }) => draft && Date.now() - at > DRAFT_MS);
  for (const { path } of [...bases.slice(BASES_KEPT), ...left]) await rm(path, { recursive: true, force: true });
}

/** Copies where the two directories are on different file systems. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  await link(from, to).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "EXDEV") throw error;
    await copyFile(from, to);
  });
}
