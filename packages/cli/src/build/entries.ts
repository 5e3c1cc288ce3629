/** Lists of what goes into a layer. Pure. */
import { dirname } from "node:path";
import type { LayerEntry } from "./layer.ts";

export const APP_USER = 1000;
export const APP_DIRECTORY = "app";
/** Modes are set, not copied: the umask at the time when the sources were checked out must not matter. */
export const MODES = { directory: 0o755, file: 0o644, program: 0o755 };

export function directory(path: string, { mode = MODES.directory, owner = 0 } = {}): LayerEntry {
  return { kind: "directory", path, mode, owner, size: 0 };
}

export function textFile(path: string, text: string, { mode = MODES.file, owner = 0 } = {}): LayerEntry {
  const content = Buffer.from(text);
  return { kind: "file", path, mode, owner, size: content.length, content };
}

/** The entries with the directories above them that are missing, in the order of an archive: by path. */
export function complete(entries: readonly LayerEntry[], owner = 0): LayerEntry[] {
  const all = new Map<string, LayerEntry>();
  for (const entry of entries) {
    for (let above = dirname(entry.path); above !== "." && !all.has(above); above = dirname(above))
      all.set(above, directory(above, { owner }));
    all.set(entry.path, entry);
  }
  return [...all.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}
