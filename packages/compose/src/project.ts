/** A project, as its compose files say it: merged, with all variables replaced. */
import type { Mapping } from "./values.ts";

export interface Project {
  /** A valid name for a network: `[a-z0-9-]`. */
  name: string;
  /** Absolute. Relative paths in the files begin here. */
  directory: string;
  /** In the order of the files. Those of profiles that are not active are left out. */
  services: ReadonlyMap<string, Mapping>;
  /** Services that only a profile would start. */
  inactive: readonly string[];
  volumes: Mapping;
  secrets: Mapping;
  configs: Mapping;
  /** Returns the value of a variable of the environment or of `.env`. */
  variable(name: string): string | undefined;
}

/** What is read from a disk. */
export interface Disk {
  /** Returns the text of a file; undefined if there is none. Throws when it cannot be read. */
  text(path: string): string | undefined;
  /** What is at a path. */
  kind(path: string): "file" | "directory" | "other" | undefined;
  /** Returns where a path leads once all links are followed. The path itself if nothing is there. */
  real(path: string): string;
  /** Returns what a file has in it, in base64. Throws when it cannot be read. */
  base64(path: string): string;
}
