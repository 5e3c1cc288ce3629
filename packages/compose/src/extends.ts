/** `extends`: a service that is laid over another one, of the same file or of one elsewhere. */
import { dirname, resolve } from "node:path";
import { type Reading, readFile } from "./files.ts";
import { merged, plain } from "./merge.ts";
import { serviceFrom } from "./paths.ts";
import { isMapping, type Mapping, mappingOf, own, textOf } from "./values.ts";

/** A chain of `extends` that is longer than this leads back to itself, in a way that nobody noticed. */
const MOST_EXTENDS = 20;

export interface Extending extends Reading {
  /** The services of the file that a service without `file` extends one of. */
  services: Mapping;
  /** Where that file is. */
  directory: string;
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
  const document = readFile(file, extending);
  if (document === undefined) return undefined;
  const whole = plain(document) as Mapping;
  return { ...extending, services: mappingOf(whole.services), directory: dirname(file) };
}

/** What a service of another file depends on is of another project. */
function inherited(directory: string, service: Mapping): Mapping {
  const { depends_on: _dependsOn, links: _links, volumes_from: _volumesFrom, ...rest } = service;
  return serviceFrom(directory, rest);
}
