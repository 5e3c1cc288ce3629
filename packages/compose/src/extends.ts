/** `extends`: a service that is laid over another one, of the same file or of one elsewhere. */
import { dirname, resolve } from "node:path";
import { type Reading, readFile } from "./files.ts";
import { merged, plain } from "./merge.ts";
import { serviceFrom } from "./paths.ts";
import { isMapping, type Mapping, mappingOf, own, textOf } from "./values.ts";

/** A chain of `extends` that is longer than this leads back to itself, in a way that nobody noticed. */
const MOST_EXTENDS = 20;

/** Services of more files than this are not meant to be read. */
const MOST_FILES = 100;

export interface Extending extends Reading {
  /** The services of the file that a service without `file` extends one of. */
  services: Mapping;
  /** Where that file is. */
  directory: string;
  /** The services of other files, by their paths: each file is read once, however many services extend one of it. */
  known: Map<string, Mapping>;
}

/** Lays a service over the one that it extends, and that over the one that it extends. */
export function withBase(service: Mapping, path: string, extending: Extending, depth = 0): Mapping | undefined {
  const { extends: base, ...rest } = service;
  if (base === undefined || base === null) return rest;
  const { findings } = extending;
  if (depth >= MOST_EXTENDS) return findings.error(`${path}.extends`, "The services extend each other in a circle.");
  const name = textOf(isMapping(base) ? base.service : base);
  const file = isMapping(base) ? textOf(base.file) : undefined;
  const source = file === undefined ? extending : elsewhere(resolve(extending.directory, file), extending);
  if (source === undefined) return undefined;
  const below = name === undefined ? undefined : own(source.services, name);
  if (!isMapping(below))
    return findings.error(
      `${path}.extends`,
      `There is no service ${name ?? "without a name"} to extend${file === undefined ? "" : ` in ${file}`}.`,
    );
  const complete = withBase(below, path, source, depth + 1);
  if (complete === undefined) return undefined;
  return merged(file === undefined ? complete : inherited(source.directory, complete), rest) as Mapping;
}

function elsewhere(file: string, extending: Extending): Extending | undefined {
  const { known, findings } = extending;
  let services = known.get(file);
  if (services === undefined) {
    if (known.size >= MOST_FILES) return findings.error("", `Services of more than ${MOST_FILES} files are extended.`);
    const document = readFile(file, extending);
    if (document === undefined) return undefined;
    services = mappingOf((plain(document) as Mapping).services);
    known.set(file, services);
  }
  return { ...extending, services, directory: dirname(file) };
}

/** What a service of another file depends on is of another project. */
function inherited(directory: string, service: Mapping): Mapping {
  const { depends_on: _dependsOn, links: _links, volumes_from: _volumesFrom, ...rest } = service;
  return serviceFrom(directory, rest);
}
