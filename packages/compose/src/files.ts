/** Compose files and files of variables, as they are read from a disk. */
import { basename, resolve } from "node:path";
import { readDocument } from "./document.ts";
import { readEnvFile } from "./env-file.ts";
import type { Findings } from "./findings.ts";
import { InterpolationError, type Variables } from "./interpolate.ts";
import { tellOutside } from "./outside.ts";
import type { Disk } from "./project.ts";
import { type Mapping, own } from "./values.ts";

/** What reading a file takes. */
export interface Reading {
  disk: Disk;
  variables: Variables;
  findings: Findings;
}

/** Reads one file. Undefined after an error among the findings. */
export function readFile(file: string, { disk, variables, findings }: Reading): Mapping | undefined {
  const text = textAt(file, disk, findings);
  if (text === undefined) return findings.hasErrors ? undefined : findings.error("", `${file} cannot be found.`);
  return readDocument({ text, name: basename(file) }, { variables, findings });
}

/**
 * Returns the variables of `outer`, and below them those of files.
 *
 * @param files relative to the directory; default: `.env`, which may be missing
 */
export function readVariables(
  outer: Variables,
  { files, directory }: { files: readonly string[] | undefined; directory: string },
  { disk, findings }: Pick<Reading, "disk" | "findings">,
): Variables {
  const below: Record<string, string> = {};
  const variables: Variables = (name) => outer(name) ?? own(below, name);
  for (const file of files ?? [".env"]) {
    const text = textAt(resolve(directory, file), disk, findings);
    if (text === undefined) {
      if (files !== undefined) findings.error("", `${file} cannot be found.`);
      continue;
    }
    // Those that were named by someone who runs a command may be anywhere.
    if (files === undefined) tellOutside(resolve(directory, file), "", { directory, disk, findings });
    try {
      Object.assign(below, readEnvFile(text, variables));
    } catch (error) {
      if (!(error instanceof InterpolationError)) throw error;
      findings.error("", `${file}: ${error.message}`);
    }
  }
  return variables;
}

function textAt(path: string, disk: Disk, findings: Findings): string | undefined {
  try {
    return disk.text(path);
  } catch (error) {
    return findings.error("", `${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)}).`);
  }
}
