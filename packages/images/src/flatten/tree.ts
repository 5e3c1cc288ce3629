/**
 * What the layers of an image are together (OCI image-spec, "Image Layer Filesystem Changeset"). Pure.
 *
 * A layer replaces what lower ones have; `.wh.<name>` removes a name of lower layers, `.wh..wh..opq` all that they have in
 * its directory. Links in the directories of a path are followed, within the image: `bin/sh` in a layer on top of one
 * where `bin` leads to `usr/bin` is `usr/bin/sh`.
 */
import { damaged } from "./refusal.ts";
import { NOTHING, type TarEntry } from "./tar-read.ts";

/** What a name stands for. Hard links are several names of one. */
export type Node = Directory | Leaf;

export interface Directory {
  entry: TarEntry;
  children: Map<string, Node>;
}

export interface Leaf {
  entry: TarEntry;
  /** Of a file: in which layer, and as which of its entries, its content is. */
  layer: number;
  index: number;
}

const WHITEOUT = ".wh.";
const OPAQUE = ".wh..wh..opq";
/** As many as the kernel follows. */
const MAX_LINKS = 40;
/** The names that these links lead through: twice what a path without links can have. */
const MAX_STEPS = 4096;
const MAX_PATH = 4095;
const MAX_NAME = 255;

export function isDirectory(node: Node | undefined): node is Directory {
  return node !== undefined && "children" in node;
}

/** An empty root. A layer may say whose it is. */
export function emptyRoot(): Directory {
  return directory("");
}

function directory(path: string): Directory {
  return { entry: { ...NOTHING, kind: "directory", path, mode: 0o755 }, children: new Map() };
}

/** Adds a layer on top. `entries` are all of its entries, in order. */
export function addLayer(root: Directory, entries: readonly TarEntry[], layer: number): void {
  // First, because a whiteout means what lower layers have, wherever it is in its own.
  for (const entry of entries) removeBelow(root, entry);
  entries.forEach((entry, index) => {
    if (whiteoutName(entry.path) === undefined) add(root, entry, { layer, index });
  });
}

/** The names of a path. None for the root. */
function partsOf(path: string): string[] {
  if (path.length > MAX_PATH) throw damaged("a path is longer than 4095 bytes");
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part.length > MAX_NAME) throw damaged("a name is longer than 255 bytes");
    if (part === "..") parts.pop();
    else parts.push(part);
  }
  return parts;
}

function whiteoutName(path: string): string | undefined {
  const name = partsOf(path).at(-1);
  return name?.startsWith(WHITEOUT) === true ? name : undefined;
}

function removeBelow(root: Directory, { path }: TarEntry): void {
  const name = whiteoutName(path);
  if (name === undefined) return;
  const parent = find(root, partsOf(path).slice(0, -1));
  if (!isDirectory(parent)) return;
  if (name === OPAQUE) parent.children.clear();
  else parent.children.delete(name.slice(WHITEOUT.length));
}

function add(root: Directory, entry: TarEntry, place: { layer: number; index: number }): void {
  const parts = partsOf(entry.path);
  const name = parts.pop();
  if (name === undefined) {
    if (entry.kind === "directory") root.entry = entry;
    return;
  }
  const parent = find(root, parts, { make: true });
  if (!isDirectory(parent)) throw damaged(`${printable(entry.path)} is below something that is not a directory`);
  const present = parent.children.get(name);
  if (entry.kind === "directory") {
    if (isDirectory(present)) present.entry = entry;
    else parent.children.set(name, { entry, children: new Map() });
  } else if (entry.kind === "hardlink") {
    const target = targetOf(root, entry);
    parent.children.set(name, target);
  } else parent.children.set(name, { entry, ...place });
}

function targetOf(root: Directory, { path, target }: TarEntry): Leaf {
  const parts = partsOf(target);
  const name = parts.pop() ?? "";
  const folder = find(root, parts);
  const found = isDirectory(folder) ? folder.children.get(name) : undefined;
  if (found === undefined || isDirectory(found))
    throw damaged(`${printable(path)} is a hard link to ${printable(target)}, which is not there`);
  return found;
}

/** Follows a path from the root, links included. With `make`, directories that are missing are made. */
function find(root: Directory, path: readonly string[], { make = false } = {}): Node | undefined {
  // What is left of the path, its next name last.
  const left = path.toReversed();
  const trail: Directory[] = [root];
  for (let links = 0, steps = 0; left.length > 0; ) {
    if ((steps += 1) > MAX_STEPS) throw damaged("a path leads through too many links");
    const name = left.pop() ?? "";
    const here = trail.at(-1) ?? root;
    if (name === "..") {
      if (trail.length > 1) trail.pop();
      continue;
    }
    let node = here.children.get(name);
    if (node === undefined && make) here.children.set(name, (node = directory("")));
    if (node === undefined) return undefined;
    if (isDirectory(node)) {
      trail.push(node);
      continue;
    }
    if (node.entry.kind !== "symlink") return left.length === 0 ? node : undefined;
    if ((links += 1) > MAX_LINKS) throw damaged("a path leads through too many links");
    const { target } = node.entry;
    if (target.startsWith("/")) trail.length = 1;
    left.push(
      ...target
        .split("/")
        .filter((part) => part !== "" && part !== ".")
        .toReversed(),
    );
  }
  return trail.at(-1);
}

/** A name for people. */
function printable(path: string): string {
  return JSON.stringify(Buffer.from(path.slice(0, 200), "latin1").toString("utf8"));
}
