/** Reads what `hibernaut launch` and builds need to know about a project directory. Decides nothing. */
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { basename, join } from "node:path";

/** The parts of a package.json that decide anything here. Its author may have written anything. */
type PackageJson = Partial<
  Record<
    | "name"
    | "main"
    | "scripts"
    | "dependencies"
    | "devDependencies"
    | "optionalDependencies"
    | "packageManager"
    | "workspaces",
    unknown
  >
>;

/** The content of a project directory. */
export interface Folder {
  /** Absolute. */
  path: string;
  name: string;
  /** Names of its files and directories. */
  entries: string[];
  packageJson: PackageJson | undefined;
  dockerfile: string | undefined;
  /** The directory with an index.html: `.` or one below. */
  pages: string | undefined;
  /** References of images in the directory. */
  images: string[];
  /** Its `hibernaut.toml` or `fly.toml`, if any. */
  appFile: string | undefined;
}

/** What a Dockerfile may be called, in the order in which they are looked for. */
export const DOCKERFILES = ["Dockerfile", "Containerfile"] as const;

/** Where the files of a static site are. */
const PAGES = [".", "public", "dist", "_site"];

/** Reads a directory: its top level only, and the heads of its tar files. */
export function lookAt(path: string, appFile: string | undefined): Folder {
  const entries = readdirSync(path).sort();
  const dockerfile = DOCKERFILES.find((name) => entries.includes(name));
  return {
    path,
    name: basename(path),
    entries,
    packageJson: entries.includes("package.json")
      ? parsed(readFileSync(join(path, "package.json"), "utf8"))
      : undefined,
    dockerfile: dockerfile && readFileSync(join(path, dockerfile), "utf8"),
    pages: PAGES.find((name) => existsSync(join(path, name, "index.html"))),
    images: [".", ...entries].flatMap((name) => imageReference(join(path, name))),
    appFile,
  };
}

function parsed(text: string): Folder["packageJson"] {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {}; // still a Node project
  }
}

/** The reference of an OCI layout or an image archive; empty for anything else. */
function imageReference(path: string): string[] {
  if (path.includes(":")) return []; // a reference cannot express such a path
  if (existsSync(join(path, "oci-layout")) && existsSync(join(path, "index.json"))) return [`oci:${path}`];
  if (!path.endsWith(".tar")) return [];
  const names = tarNames(path);
  // Since version 25, `docker save` writes both; only its own list has the tags.
  if (names.includes("manifest.json")) return [`docker-archive:${path}`];
  return names.includes("oci-layout") ? [`oci-archive:${path}`] : [];
}

const BLOCK = 512;
/** An image has far fewer entries; this bounds the time for any other archive. */
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
