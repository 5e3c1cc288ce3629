/** The order in which an image's files are packed. Pure. */
import { NOTHING, type TarEntry } from "./tar-read.ts";
import type { WrittenEntry } from "./tar-write.ts";
import { type Directory, isDirectory, type Leaf } from "./tree.ts";

export interface Plan {
  /** Directories, links and devices: all that has no content. A directory comes before what is in it. */
  heads: WrittenEntry[];
  /** By layer and the number of an entry there: the names of the file that it is. */
  files: ReadonlyMap<number, ReadonlyMap<number, string[]>>;
}

/** Those that squashfs keeps. */
const XATTRS = /^(?:user|trusted|security)\./;

export function planOf(root: Directory): Plan {
  const heads: WrittenEntry[] = [];
  const files = new Map<number, Map<number, string[]>>();
  const addFile = ({ layer, index }: Leaf, path: string) => {
    const ofLayer = files.get(layer) ?? new Map<number, string[]>();
    const names = ofLayer.get(index) ?? [];
    names.push(path);
    files.set(layer, ofLayer.set(index, names));
  };
  const left: [path: string, node: Directory][] = [["", root]];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const [above, { children }] = next;
    for (const [name, node] of children) {
      const path = above === "" ? name : `${above}/${name}`;
      if (isDirectory(node)) {
        heads.push(written(node.entry, path));
        left.push([path, node]);
      } else if (node.entry.kind === "file") addFile(node, path);
      else heads.push(written(node.entry, path));
    }
  }
  return { heads, files };
}

/** An entry under another name. */
export function written(entry: TarEntry, path: string): WrittenEntry {
  const { kind, mode, uid, gid, time, size, target, device } = entry;
  const xattrs = new Map([...entry.xattrs].filter(([name]) => XATTRS.test(name)));
  return { kind, path, mode, uid, gid, time, size, target, device, xattrs };
}

/** Another name of a file that is packed already. */
export function hardLink(to: string, path: string): WrittenEntry {
  return { ...NOTHING, kind: "hardlink", path, target: to };
}
