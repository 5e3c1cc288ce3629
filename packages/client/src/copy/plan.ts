/** Where a copy ends up, by the rules of `docker cp`, the same in both directions. Pure. */
import { posix } from "node:path";
import { CopyError } from "./copy-error.ts";

export interface Source {
  /** As it was typed: a trailing `/.` copies the content of a directory. */
  path: string;
  directory: boolean;
  /** The last part of its absolute path; empty for `/`. */
  base: string;
}

export interface Target {
  /** As it was typed: with a trailing slash, it must be a directory. */
  path: string;
  /** Undefined if nothing is there. */
  kind: "file" | "directory" | "other" | undefined;
  /** The path without symbolic links, if something is there. */
  real?: string;
}

/** The directory that must exist, and the name of the copy in it; without a name, the content goes there. */
export interface Plan {
  directory: string;
  name: string | undefined;
}

/** Decides where the copy goes. Throws a {@link CopyError} when a directory would replace a file, or a file lead nowhere. */
export function planCopy(source: Source, target: Target): Plan {
  const real = target.real ?? withoutSlash(target.path);
  const asDirectory = /\/\.?$/.test(target.path);
  if (target.kind === "directory") {
    const content = source.directory && source.path.endsWith("/.");
    return { directory: real, name: content || source.base === "" ? undefined : source.base };
  }
  if (target.kind === "other") throw new CopyError(`${target.path} is a device, pipe or socket. Choose another path.`);
  if (target.kind === "file" && (source.directory || asDirectory))
    throw new CopyError(
      `${target.path} is a file, and ${source.directory ? "a directory cannot replace it" : "not a directory"}. Choose another path.`,
    );
  if (target.kind === undefined && !source.directory && asDirectory)
    throw new CopyError(
      `${target.path} does not exist. Create the directory first, or leave out the slash at the end.`,
    );
  return { directory: posix.dirname(real), name: posix.basename(real) };
}

function withoutSlash(path: string): string {
  return path.replace(/\/+\.?$/, "") || "/";
}
