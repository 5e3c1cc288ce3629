/** What a project's folder holds, as far as `hibernaut launch` wants to know. Reads; nothing here decides. */
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { basename, join } from "node:path";

/** A folder, looked at. */
export interface Folder {
  /** Absolute. */
  path: string;
  name: string;
  /** Files and folders in it. */
  entries: string[];
  packageJson: { name?: unknown; scripts?: unknown } | undefined;
  dockerfile: string | undefined;
  /** References of images that lie in it already. */
  images: string[];
  /** `hibernaut.toml` or `fly.toml`, where it has one. */
  appFile: string | undefined;
}

/** Looks at a folder; only at its top, and into its tar files. */
export function lookAt(path: string, appFile: string | undefined): Folder {
  const entries = readdirSync(path).sort();
  const dockerfile = ["Dockerfile", "Containerfile"].find((name) => entries.includes(name));
  return {
    path,
    name: basename(path),
    entries,
    packageJson: entries.includes("package.json")
      ? parsed(readFileSync(join(path, "package.json"), "utf8"))
      : undefined,
    dockerfile: dockerfile && readFileSync(join(path, dockerfile), "utf8"),
    images: [".", ...entries].flatMap((name) => imageReference(join(path, name))),
    appFile,
  };
}

function parsed(text: string): Folder["packageJson"] {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {}; // It is a Node project all the same.
  }
}

/** The reference of an OCI layout or an image archive; nothing for everything else. */
function imageReference(path: string): string[] {
  if (path.includes(":")) return []; // A reference cannot say such a path.
  if (existsSync(join(path, "oci-layout")) && existsSync(join(path, "index.json"))) return [`oci:${path}`];
  if (!path.endsWith(".tar")) return [];
  const names = tarNames(path);
  // `docker save` writes both since version 25, and its own list is the one that has the tags.
  if (names.includes("manifest.json")) return [`docker-archive:${path}`];
  return names.includes("oci-layout") ? [`oci-archive:${path}`] : [];
}

const BLOCK = 512;
/** An image has far fewer entries at its top; this bounds the time for any other archive. */
const MAX_ENTRIES = 2000;

/** Names of a tar file's entries, read from their heads only. */
function tarNames(file: string): string[] {
  const names: string[] = [];
  const descriptor = openSync(file, "r");
  try {
    const head = Buffer.alloc(BLOCK);
    for (let at = 0; names.length < MAX_ENTRIES && readSync(descriptor, head, 0, BLOCK, at) === BLOCK; ) {
      const name = head.toString("latin1", 0, 100).replace(/\0.*$/s, "");
      const size = Number.parseInt(head.toString("latin1", 124, 136), 8);
      if (name === "" || !Number.isSafeInteger(size)) break;
      names.push(name.replace(/^\.\//, ""));
      at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
    }
  } finally {
    closeSync(descriptor);
  }
  return names;
}
