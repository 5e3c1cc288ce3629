/** `include`: whole projects of other files, which become part of the one that names them. */
import { dirname, resolve } from "node:path";
import { type Reading, readFile, readVariables } from "./files.ts";
import { merged, plain } from "./merge.ts";
import { contentFrom, serviceFrom } from "./paths.ts";
import { isMapping, type Mapping, mappingOf, own, pairsOf, textOf, textsOf, type Value } from "./values.ts";

/** A project that includes more files than this, each counted as often as it is included, is not meant to be read. */
const MOST_INCLUDED = 100;
/** What an included file may define. */
const PARTS = ["services", "volumes", "secrets", "configs"] as const;

/** Counts what is read for one project. */
export interface Including extends Reading {
  included: { count: number };
}

/** One entry of `include`. Paths are absolute. */
interface Entry {
  /** The first, and others that are laid over it. */
  files: string[];
  /** Where relative paths in them begin. */
  directory: string;
  /** Undefined: `.env` there. */
  envFiles: string[] | undefined;
}

/**
 * Returns a document with all that it includes. What two of them define in different ways is an error: `include` lays nothing over
 * anything.
 *
 * @param files those that were opened to get here, this one last
 */
export function withIncluded(document: Mapping, files: readonly string[], including: Including): Mapping | undefined {
  const { include, ...rest } = document;
  if (include === undefined || include === null) return rest;
  const { findings } = including;
  if (!Array.isArray(include)) return findings.error("include", "`include` is a list of files.");
  let whole = rest;
  for (const one of include) {
    const entry = entryOf(one, dirname(files.at(-1) ?? ""));
    if (entry === undefined)
      return findings.error("include", `\`${JSON.stringify(one).slice(0, 80)}\` names no file of this computer.`);
    const part = readEntry(entry, files, including);
    if (part === undefined) return undefined;
    whole = together(whole, part, { from: entry.files[0] ?? "", including });
  }
  return whole;
}

function entryOf(entry: Value, directory: string): Entry | undefined {
  const long = isMapping(entry) ? entry : { path: entry };
  const paths = textsOf(long.path);
  const [first] = paths;
  if (first === undefined || paths.some((path) => /^[a-z]+:|^git@/.test(path))) return undefined;
  const files = paths.map((path) => resolve(directory, path));
  const chosen = textOf(long.project_directory);
  return {
    files,
    directory: chosen === undefined ? dirname(resolve(directory, first)) : resolve(directory, chosen),
    envFiles: long.env_file === undefined ? undefined : textsOf(long.env_file).map((file) => resolve(directory, file)),
  };
}

/** Reads one entry as a project of its own, whose variables come after those of the one that includes it. */
function readEntry(
  { files, directory, envFiles }: Entry,
  above: readonly string[],
  including: Including,
): Mapping | undefined {
  const { findings, included } = including;
  const variables = readVariables(including.variables, { files: envFiles, directory }, including);
  let whole: Mapping | undefined;
  for (const file of files) {
    included.count += 1;
    if (included.count > MOST_INCLUDED)
      return findings.error("include", `More than ${MOST_INCLUDED} files are included.`);
    if (above.includes(file))
      return findings.error("include", `The files include each other: ${[...above, file].join(", ")}.`);
    const document = readFile(file, { ...including, variables });
    const complete = document && withIncluded(document, [...above, file], { ...including, variables });
    if (complete === undefined) return undefined;
    whole = whole === undefined ? (plain(complete) as Mapping) : (merged(whole, complete) as Mapping);
  }
  return whole && settled(whole, directory, variables);
}

/** With nothing left in it that depends on where it came from: its paths, and variables that only its own files set. */
function settled(whole: Mapping, directory: string, variables: Reading["variables"]): Mapping {
  const valued = (service: Mapping) =>
    service.environment === undefined || service.environment === null
      ? service
      : {
          ...service,
          environment: Object.fromEntries(
            pairsOf(service.environment).map(([name, value]) => [name, value ?? variables(name) ?? null]),
          ),
        };
  const each = (part: Value | undefined, change: (one: Value) => Value) =>
    Object.fromEntries(Object.entries(mappingOf(part)).map(([name, one]) => [name, change(one)]));
  const content = (one: Value) => {
    const variable = isMapping(one) ? textOf(one.environment) : undefined;
    const value = variable === undefined ? undefined : variables(variable);
    return value === undefined ? contentFrom(directory, one) : { content: value };
  };
  return {
    services: each(whole.services, (one) => (isMapping(one) ? serviceFrom(directory, valued(one)) : one)),
    volumes: mappingOf(whole.volumes),
    secrets: each(whole.secrets, content),
    configs: each(whole.configs, content),
  };
}

/** Puts what was included next to what is there. The same definition may come twice, as of a file that two others include. */
function together(whole: Mapping, part: Mapping, { from, including }: { from: string; including: Including }): Mapping {
  const result = { ...whole };
  for (const key of PARTS) {
    const [mine, theirs] = [mappingOf(whole[key]), mappingOf(part[key])];
    for (const name of Object.keys(theirs))
      if (Object.hasOwn(mine, name) && JSON.stringify(own(mine, name)) !== JSON.stringify(own(theirs, name)))
        including.findings.error(
          `${key}.${name}`,
          `${from} defines it as well, in another way. Rename one of them, or lay a file over the included one: {path: [${from}, changes.yaml]}.`,
        );
    if (Object.keys(theirs).length > 0) result[key] = { ...theirs, ...mine };
  }
  return result;
}
