/** Reads the compose files of a project, by the specification's rules for variables, several files, `include`, `extends` and profiles. */
import { createHash } from "node:crypto";
import { basename, dirname, join, resolve } from "node:path";
import { type Extending, withBase } from "./extends.ts";
import { readFile, readVariables } from "./files.ts";
import type { Findings } from "./findings.ts";
import { type Including, withIncluded } from "./include.ts";
import { merged, plain } from "./merge.ts";
import type { Disk, Project } from "./project.ts";
import { isMapping, type Mapping, mappingOf, own, textOf, textsOf } from "./values.ts";

/** What a compose file may be called, in the order in which they are looked for. */
export const COMPOSE_FILES = ["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"] as const;
/** A file next to one of them that is laid over it, if nobody names files. */
const OVERRIDES = [
  "compose.override.yaml",
  "compose.override.yml",
  "docker-compose.override.yml",
  "docker-compose.override.yaml",
];

/** Each is compared with all others. The largest project that we know has a third. */
const MOST_SERVICES = 250;

export interface ReadOptions {
  /** Where the command runs. Absolute. */
  directory: string;
  /** Named files. Default: the first of {@link COMPOSE_FILES} in the directory or above it, with its override. */
  files?: readonly string[] | undefined;
  /** Files of variables in place of `.env`. */
  envFiles?: readonly string[] | undefined;
  /** Default: COMPOSE_PROJECT_NAME, `name` of the files, or the name of the directory. */
  name?: string | undefined;
  /** Profiles whose services are part of the project. `*` is all of them. */
  profiles?: readonly string[] | undefined;
  environment: Readonly<Record<string, string | undefined>>;
}

/** Returns the compose files that are meant; empty if there are none. */
function findComposeFiles({ directory, files, environment }: ReadOptions, disk: Pick<Disk, "kind">): string[] {
  const separator = environment.COMPOSE_PATH_SEPARATOR ?? ":";
  const named = files ?? environment.COMPOSE_FILE?.split(separator);
  if (named !== undefined && named.length > 0) return named.map((file) => resolve(directory, file));
  for (let at = directory; ; at = dirname(at)) {
    const found = COMPOSE_FILES.map((name) => join(at, name)).find((path) => disk.kind(path) === "file");
    if (found !== undefined) {
      const above = OVERRIDES.map((name) => join(at, name)).find((path) => disk.kind(path) === "file");
      return above === undefined ? [found] : [found, above];
    }
    if (at === dirname(at)) return [];
  }
}

/** Returns the project, or undefined after an error among the findings. */
export function readProject(options: ReadOptions, disk: Disk, findings: Findings): Project | undefined {
  const files = findComposeFiles(options, disk);
  const [first] = files;
  if (first === undefined)
    return findings.error("", `There is no compose file in ${options.directory} or above it. Name one with --file.`);
  const directory = dirname(first);
  const { environment, envFiles } = options;
  const variables = readVariables((name) => own(environment, name), { files: envFiles, directory }, { disk, findings });
  const including: Including = { disk, variables, findings, included: { count: 0 } };
  let whole: Mapping | undefined;
  for (const file of files) {
    const alone = readFile(file, including);
    const document = alone && withIncluded(alone, [file], including);
    if (document === undefined) return undefined;
    whole = whole === undefined ? (plain(document) as Mapping) : (merged(whole, document) as Mapping);
  }
  if (whole === undefined) return undefined;
  const services = isMapping(whole.services) ? whole.services : {};
  if (Object.keys(services).length === 0) findings.error("services", "The project has no services.");
  if (Object.keys(services).length > MOST_SERVICES)
    return findings.error("services", `A project has at most ${MOST_SERVICES} services.`);
  const extending: Extending = { disk, variables, findings, services, directory, known: new Map() };
  const all = Object.entries(services).flatMap(([name, service]): [string, Mapping][] => {
    if (!isMapping(service)) {
      findings.error(`services.${name}`, "A service is a mapping.");
      return [];
    }
    const extended = withBase(service, `services.${name}`, extending);
    return extended === undefined ? [] : [[name, extended]];
  });
  const isActive = activeProfiles(options);
  const chosen = options.name ?? variables("COMPOSE_PROJECT_NAME");
  const trouble = nameTrouble(chosen);
  if (trouble !== undefined) findings.error("name", trouble);
  const name = projectName(chosen ?? textOf(whole.name) ?? basename(directory));
  return {
    ...{ name, directory },
    services: new Map(all.filter(([, { profiles }]) => isActive(textsOf(profiles)))),
    inactive: all.filter(([, { profiles }]) => !isActive(textsOf(profiles))).map(([service]) => service),
    volumes: mappingOf(whole.volumes),
    secrets: mappingOf(whole.secrets),
    configs: mappingOf(whole.configs),
    variable: variables,
  };
}

/** Names of apps begin with that of their project, and have 63 characters. */
const MOST_NAME_CHARACTERS = 30;

/** The closest name that a network and the apps in it can have. One that has to be cut still differs from others. */
export function projectName(text: string): string {
  const name = text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "");
  if (name === "") return "project";
  if (name.length <= MOST_NAME_CHARACTERS) return name;
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 6);
  return `${name.slice(0, MOST_NAME_CHARACTERS - 7).replace(/-+$/, "")}-${hash}`;
}

/** Throws no error, and returns what is wrong with a name that someone chose; undefined if nothing is. */
function nameTrouble(name: string | undefined): string | undefined {
  if (name === undefined || projectName(name) === name) return undefined;
  return `\`${name.slice(0, 60)}\` cannot be the name of a project: use up to ${MOST_NAME_CHARACTERS} lowercase letters, digits and hyphens.`;
}

function activeProfiles({ profiles, environment }: ReadOptions): (of: readonly string[]) => boolean {
  const active = new Set(profiles ?? environment.COMPOSE_PROFILES?.split(",") ?? []);
  return (of) => of.length === 0 || active.has("*") || of.some((profile) => active.has(profile));
}
