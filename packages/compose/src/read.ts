/** Reads the compose files of a project, by the specification's rules for variables, several files, `extends` and profiles. */
import { createHash } from "node:crypto";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { readDocument } from "./document.ts";
import { readEnvFile } from "./env-file.ts";
import type { Findings } from "./findings.ts";
import { InterpolationError, type Variables } from "./interpolate.ts";
import { merged, plain } from "./merge.ts";
import type { Disk, Project } from "./project.ts";
import { isMapping, type Mapping, textOf, textsOf, type Value, own as valueIn } from "./values.ts";

/** What a compose file may be called, in the order in which they are looked for. */
export const COMPOSE_FILES = ["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"] as const;
/** A file next to one of them that is laid over it, if nobody names files. */
const OVERRIDES = [
  "compose.override.yaml",
  "compose.override.yml",
  "docker-compose.override.yml",
  "docker-compose.override.yaml",
];
/** A chain of `extends` that is longer than this leads back to itself, in a way that nobody noticed. */
const MOST_EXTENDS = 20;

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
export function findComposeFiles({ directory, files, environment }: ReadOptions, disk: Pick<Disk, "kind">): string[] {
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
  const variables = readVariables(options, directory, disk, findings);
  let whole: Mapping | undefined;
  for (const file of files) {
    const document = read(file, { disk, variables, findings });
    if (document === undefined) return undefined;
    whole = whole === undefined ? (plain(document) as Mapping) : (merged(whole, document) as Mapping);
  }
  if (whole === undefined) return undefined;
  if (whole.include !== undefined)
    findings.error("include", "`include` is not read. Name the included files with --file, one after the other.");
  const services = isMapping(whole.services) ? whole.services : {};
  if (Object.keys(services).length === 0) findings.error("services", "The project has no services.");
  const extending: Extending = { disk, variables, findings, services, directory };
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

function mappingOf(value: Value | undefined): Mapping {
  return isMapping(value) ? value : {};
}

function activeProfiles({ profiles, environment }: ReadOptions): (of: readonly string[]) => boolean {
  const active = new Set(profiles ?? environment.COMPOSE_PROFILES?.split(",") ?? []);
  return (of) => of.length === 0 || active.has("*") || of.some((profile) => active.has(profile));
}

/** The environment comes before the file. */
function readVariables(
  { environment, envFiles }: ReadOptions,
  directory: string,
  disk: Disk,
  findings: Findings,
): Variables {
  const own: Record<string, string> = {};
  const variables: Variables = (name) => valueIn(environment, name) ?? valueIn(own, name);
  for (const file of envFiles ?? [".env"]) {
    const path = resolve(directory, file);
    const text = textAt(path, disk, findings);
    if (text === undefined) {
      if (envFiles !== undefined) findings.error("", `${file} cannot be found.`);
      continue;
    }
    try {
      Object.assign(own, readEnvFile(text, variables));
    } catch (error) {
      if (!(error instanceof InterpolationError)) throw error;
      findings.error("", `${file}: ${error.message}`);
    }
  }
  return variables;
}

interface Reading {
  disk: Disk;
  variables: Variables;
  findings: Findings;
}

function read(file: string, { disk, variables, findings }: Reading): Mapping | undefined {
  const text = textAt(file, disk, findings);
  if (text === undefined) return findings.hasErrors ? undefined : findings.error("", `${file} cannot be found.`);
  return readDocument({ text, name: basename(file) }, { variables, findings });
}

function textAt(path: string, disk: Disk, findings: Findings): string | undefined {
  try {
    return disk.text(path);
  } catch (error) {
    return findings.error("", `${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)}).`);
  }
}

interface Extending extends Reading {
  /** The services of the file that a service without `file` extends one of. */
  services: Mapping;
  /** Where that file is. */
  directory: string;
}

/** Lays a service over the one that it extends, and that over the one that it extends. */
function withBase(service: Mapping, path: string, extending: Extending, depth = 0): Mapping | undefined {
  const { extends: base, ...own } = service;
  if (base === undefined || base === null) return own;
  const { findings } = extending;
  if (depth >= MOST_EXTENDS) return findings.error(`${path}.extends`, "The services extend each other in a circle.");
  const name = textOf(isMapping(base) ? base.service : base);
  const file = isMapping(base) ? textOf(base.file) : undefined;
  const source = file === undefined ? extending : elsewhere(resolve(extending.directory, file), extending);
  if (source === undefined) return undefined;
  const below = name === undefined ? undefined : valueIn(source.services, name);
  if (!isMapping(below))
    return findings.error(
      `${path}.extends`,
      `There is no service ${name ?? "without a name"} to extend${file === undefined ? "" : ` in ${file}`}.`,
    );
  const complete = withBase(below, path, source, depth + 1);
  if (complete === undefined) return undefined;
  const inherited = file === undefined ? complete : from(source.directory, complete);
  return merged(inherited, own) as Mapping;
}

function elsewhere(file: string, extending: Extending): Extending | undefined {
  const document = read(file, extending);
  if (document === undefined) return undefined;
  const whole = plain(document) as Mapping;
  return { ...extending, services: mappingOf(whole.services), directory: dirname(file) };
}

/** Relative paths of a service of another file begin in that file's directory. */
function from(directory: string, service: Mapping): Mapping {
  const absolute = (path: string) => (isAbsolute(path) || /^[a-z]+:\/\//.test(path) ? path : resolve(directory, path));
  // What a service of another file depends on is of another project.
  const { depends_on: _dependsOn, links: _links, volumes_from: _volumesFrom, ...own } = service;
  const { build, env_file: envFile, volumes } = own;
  const context = (value: Value | undefined) => absolute(textOf(value) ?? ".");
  return {
    ...own,
    ...(build !== undefined &&
      build !== null && {
        build: isMapping(build) ? { ...build, context: context(build.context) } : context(build),
      }),
    ...(envFile !== undefined &&
      envFile !== null && {
        env_file: [envFile]
          .flat()
          .map((one) =>
            isMapping(one) ? { ...one, path: absolute(textOf(one.path) ?? "") } : absolute(textOf(one) ?? ""),
          ),
      }),
    ...(Array.isArray(volumes) && {
      volumes: volumes.map((volume) => {
        if (isMapping(volume)) return volume.type === "bind" ? { ...volume, source: context(volume.source) } : volume;
        const text = textOf(volume) ?? "";
        return text.startsWith(".") ? text.replace(/^[^:]*/, (source) => absolute(source)) : text;
      }),
    }),
  };
}
