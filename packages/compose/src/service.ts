/** What one service becomes. */
import { resolve } from "node:path";
import type { MachineConfig, ServiceConfig } from "@hibernaut/client";
import { splitWords } from "@hibernaut/lib/words";
import { type NeededSecret, readContents } from "./contents.ts";
import { readEnvFile } from "./env-file.ts";
import type { Findings } from "./findings.ts";
import { checkOf } from "./health.ts";
import { InterpolationError } from "./interpolate.ts";
import { NOT_POSSIBLE, READ, WITHOUT_EFFECT } from "./keys.ts";
import { knownImage } from "./known-images.ts";
import { type Ports, reachOf, readExpose, readPorts } from "./ports.ts";
import type { Disk, Project } from "./project.ts";
import { bytesOf, isMapping, type Mapping, pairsOf, secondsOf, textOf, textsOf, type Value } from "./values.ts";
import { readVolumes } from "./volumes.ts";

/** Another service that has to be up first. */
export interface Dependency {
  service: string;
  condition: "started" | "healthy" | "completed";
  /** Otherwise it may be missing, or fail. */
  required: boolean;
}

/** How an image is built. */
export interface BuildPlan {
  /** Absolute. */
  directory: string;
  /** Relative to the directory. */
  dockerfile: string | undefined;
  target: string | undefined;
  args: Record<string, string>;
}

/** An app, and the configuration of its machine. */
export interface ServicePlan {
  service: string;
  app: string;
  /** What it is called in the network, besides the app's name. */
  aliases: string[];
  /** Undefined if it is built. */
  image: string | undefined;
  build: BuildPlan | undefined;
  /** Without the image. */
  config: Omit<MachineConfig, "image">;
  secrets: NeededSecret[];
  dependsOn: Dependency[];
  /** Other names for other services. */
  links: [service: string, alias: string][];
  ports: Ports;
  /** It ends by itself, and others wait for that. */
  runsOnce: boolean;
  /** When it sleeps, if something could wake it. */
  sleep: SleepTerms;
}

/** What happens to a service that nobody uses. */
export interface SleepTerms {
  autostop: "suspend" | "stop" | "off";
  /** Seconds without a request or a byte. */
  idleTimeout: number;
}

interface Parts {
  project: Project;
  disk: Disk;
  /** Which service uses each named volume. */
  users: Map<string, string>;
  findings: Findings;
}

/** What a machine has that says nothing else, in MB. */
const DEFAULT_MEMORY_MB = 256;
const LEAST_MEMORY_MB = 64;
const MIB = 1024 ** 2;
const MOST_STOP_S = 300;
const DEFAULT_IDLE_S = 300;

const CONDITIONS: Readonly<Record<string, Dependency["condition"]>> = {
  service_started: "started",
  service_healthy: "healthy",
  service_completed_successfully: "completed",
};

/** Returns what a service becomes. Whatever is not carried is among the findings. */
export function planService(service: string, definition: Mapping, parts: Parts): ServicePlan {
  const { project, findings } = parts;
  const path = `services.${service}`;
  tellKeys(definition, path, findings);
  const own = ownOf(definition, path, findings);
  const build = buildOf(definition.build, path, parts);
  const image = build === undefined ? textOf(definition.image) : undefined;
  if (image === undefined && build === undefined) findings.error(path, "The service has neither `image` nor `build`.");
  const known = knownImage(textOf(definition.image) ?? "");
  const published = readPorts(definition.ports, `${path}.ports`, findings);
  const named = [...readExpose(definition.expose), ...exposedBy(build, parts)];
  const listens = published.length + named.length > 0 ? named : (known?.ports ?? []);
  const ports = reachOf({ published, inside: listens }, own.http);
  const { mounts, files } = readVolumes(definition, `${path}.volumes`, parts);
  const contents = readContents(definition, path, parts);
  const all = [ports.http?.internal, ...ports.tcp.map(({ internal }) => internal), ...ports.inside].flatMap(
    (port) => port ?? [],
  );
  const check = checkOf(definition.healthcheck, all, `${path}.healthcheck`, findings);
  const services = servicesOf(ports, own.sleep);
  return {
    service,
    app: appName(project.name, service),
    aliases: aliasesOf(service, definition, path, findings),
    ...{ image, build, ports },
    secrets: contents.secrets,
    dependsOn: dependenciesOf(definition.depends_on, path, findings),
    links: textsOf(definition.links).flatMap((link): [string, string][] => {
      const [to = "", alias] = link.split(":");
      return alias === undefined ? [] : [[to, alias]];
    }),
    runsOnce: false,
    sleep: own.sleep,
    config: {
      guest: guestOf(definition, path, known?.memoryMb ?? DEFAULT_MEMORY_MB, findings),
      ...part("env", environmentOf(definition, path, parts)),
      ...part("init", initOf(definition, path, findings)),
      ...(services.length > 0 && { services }),
      ...(check !== undefined && { checks: { health: check } }),
      restart: restartOf(definition, path, findings),
      ...part("stop_config", stopOf(definition, path, findings)),
      // As a container's own files are, until the next version.
      keep_layer: true,
      ...(mounts.length > 0 && { mounts }),
      ...(files.length + contents.files.length > 0 && { files: [...files, ...contents.files] }),
    },
  };
}

/** The name of the app of a service. */
export function appName(project: string, service: string): string {
  const name = service.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  return `${project}-${name}`.slice(0, 63).replace(/-+$/, "");
}

function part<K extends string>(key: K, value: object): { [P in K]?: never } | { [P in K]: never } {
  return Object.keys(value).length === 0 ? {} : ({ [key]: value } as { [P in K]: never });
}

function tellKeys(definition: Mapping, path: string, findings: Findings): void {
  for (const key of Object.keys(definition)) {
    if (READ.has(key) || key.startsWith("x-")) continue;
    const why = WITHOUT_EFFECT[key];
    const refused = NOT_POSSIBLE[key];
    const at = `${path}.${key}`;
    if (refused !== undefined) findings.warn(at, `Left out. ${refused}`);
    else if (why !== undefined) findings.note(at, `No effect. ${why}`);
    else findings.warn(at, "Left out: the key is unknown.");
  }
  if (definition.extra_hosts !== undefined)
    findings.warn(
      `${path}.extra_hosts`,
      "Left out. This host is host.hibernaut.internal in every machine; other names come from the host's name server.",
    );
  const networks = isMapping(definition.networks) ? Object.keys(definition.networks) : textsOf(definition.networks);
  if (networks.some((name) => name !== "default"))
    findings.note(`${path}.networks`, "All services of the project share one network here.");
}

interface Own {
  http: number | false | undefined;
  sleep: SleepTerms;
}

/** `x-hibernaut`: what a compose file has no words for. */
function ownOf(definition: Mapping, path: string, findings: Findings): Own {
  const own = isMapping(definition["x-hibernaut"]) ? definition["x-hibernaut"] : {};
  const at = `${path}.x-hibernaut`;
  const { http, idle_timeout: idle, autostop } = own;
  for (const key of Object.keys(own))
    if (!["http", "idle_timeout", "autostop"].includes(key))
      findings.error(`${at}.${key}`, "The key is unknown. There are http, idle_timeout and autostop.");
  const isHttp =
    http === undefined || http === false || (Number.isInteger(http) && Number(http) >= 1 && Number(http) <= 65_535);
  if (!isHttp) findings.error(`${at}.http`, "Name the port that speaks HTTP, or false for none.");
  const seconds = idle === undefined ? undefined : secondsOf(idle);
  if (idle !== undefined && (seconds === undefined || seconds < 1))
    findings.error(`${at}.idle_timeout`, "Write a duration, as in 10m.");
  const isAutostop = autostop === undefined || autostop === "suspend" || autostop === "stop" || autostop === "off";
  if (!isAutostop) findings.error(`${at}.autostop`, "Write suspend, stop or off.");
  return {
    http: isHttp ? (http as number | false | undefined) : undefined,
    sleep: {
      autostop: isAutostop ? (autostop ?? "suspend") : "suspend",
      idleTimeout: Math.max(1, Math.round(seconds ?? DEFAULT_IDLE_S)),
    },
  };
}

/** Returns the plan of a service that listens at these ports as well, which only its image says. */
export function withExposed(plan: ServicePlan, exposed: readonly number[]): ServicePlan {
  if (exposed.length === 0) return plan;
  const ports = { ...plan.ports, inside: [...new Set([...plan.ports.inside, ...exposed])] };
  return { ...plan, ports, config: { ...plan.config, services: servicesOf(ports, plan.sleep) } };
}

function servicesOf({ http, tcp, inside }: Ports, { autostop, idleTimeout }: SleepTerms): ServiceConfig[] {
  // What other services keep open, as pools do, is silent most of the time, and survives the sleep.
  const sleep = { autostop, idle: "quiet", idle_timeout: idleTimeout } as const;
  const byInternal = Map.groupBy(tcp, ({ internal }) => internal);
  return [
    ...(http === undefined ? [] : [{ protocol: "http" as const, internal_port: http.internal, ...sleep }]),
    ...[...byInternal].map(([internal, ports]) => ({
      protocol: "tcp" as const,
      internal_port: internal,
      ports: ports.flatMap(({ published }) => (published === undefined ? [] : [{ port: published }])),
      ...sleep,
    })),
    ...inside.map((internal) => ({ protocol: "tcp" as const, internal_port: internal, ...sleep })),
  ];
}

function buildOf(value: Value | undefined, path: string, { project, findings }: Parts): BuildPlan | undefined {
  if (value === undefined || value === null) return undefined;
  const build = isMapping(value) ? value : { context: value };
  const context = textOf(build.context) ?? ".";
  if (/^(?:https?|git|ssh):\/\/|^git@|\.git(?:#|$)/.test(context))
    return findings.error(`${path}.build`, `${context} is not on this computer. Clone it, and name the directory.`);
  for (const key of Object.keys(build))
    if (!["context", "dockerfile", "target", "args"].includes(key))
      findings.warn(`${path}.build.${key}`, "Left out: builds here know context, dockerfile, target and args.");
  return {
    directory: resolve(project.directory, context),
    dockerfile: textOf(build.dockerfile),
    target: textOf(build.target),
    args: Object.fromEntries(pairsOf(build.args).map(([name, given]) => [name, given ?? project.variable(name) ?? ""])),
  };
}

/** The ports that the Dockerfile exposes. */
function exposedBy(build: BuildPlan | undefined, { disk }: Parts): number[] {
  if (build === undefined) return [];
  let text: string | undefined;
  try {
    text = disk.text(resolve(build.directory, build.dockerfile ?? "Dockerfile"));
  } catch {
    return []; // the build says why
  }
  return [...(text ?? "").matchAll(/^\s*EXPOSE\s+(.+)$/gim)].flatMap(([, ports = ""]) =>
    readExpose(ports.trim().split(/\s+/)),
  );
}

function aliasesOf(service: string, definition: Mapping, path: string, findings: Findings): string[] {
  const { container_name: container, hostname, networks } = definition;
  const inNetworks = isMapping(networks)
    ? Object.values(networks).flatMap((one) => (isMapping(one) ? textsOf(one.aliases) : []))
    : [];
  const wanted = [service, textOf(container), textOf(hostname), ...inNetworks].flatMap((name) =>
    name ? name.toLowerCase() : [],
  );
  const [good, bad] = [wanted.filter((name) => NAME.test(name)), wanted.filter((name) => !NAME.test(name))];
  for (const name of bad) findings.warn(path, `\`${name}\` cannot be a name in the network.`);
  return [...new Set(good)];
}

const NAME = /^[a-z0-9_](?:[a-z0-9_.-]{0,250}[a-z0-9_])?$/;

function dependenciesOf(value: Value | undefined, path: string, findings: Findings): Dependency[] {
  if (!isMapping(value)) return textsOf(value).map((service) => ({ service, condition: "started", required: true }));
  return Object.entries(value).map(([service, one]) => {
    const { condition, required } = isMapping(one) ? one : {};
    const known = CONDITIONS[textOf(condition) ?? "service_started"];
    if (known === undefined)
      findings.error(`${path}.depends_on.${service}`, `There is no condition ${String(condition)}.`);
    return { service, condition: known ?? "started", required: required !== false };
  });
}

function environmentOf(definition: Mapping, path: string, { project, disk, findings }: Parts): Record<string, string> {
  const result: Record<string, string> = {};
  for (const entry of [definition.env_file ?? []].flat() as Value[]) {
    const file = textOf(isMapping(entry) ? entry.path : entry) ?? "";
    const isRequired = !(isMapping(entry) && entry.required === false);
    try {
      const text = disk.text(resolve(project.directory, file));
      if (text !== undefined)
        Object.assign(
          result,
          readEnvFile(text, (name) => project.variable(name)),
        );
      else if (isRequired) findings.error(`${path}.env_file`, `${file} cannot be found.`);
    } catch (error) {
      const why =
        error instanceof InterpolationError
          ? error.message
          : `It cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)}).`;
      findings.error(`${path}.env_file`, `${file}: ${why}`);
    }
  }
  for (const [name, value] of pairsOf(definition.environment)) {
    const given = value ?? project.variable(name);
    if (given !== undefined) result[name] = given;
  }
  return result;
}

function initOf(definition: Mapping, path: string, findings: Findings) {
  const words = (key: "entrypoint" | "command") => {
    const value = definition[key];
    if (value === undefined || value === null) return undefined;
    if (typeof value !== "string") return textsOf(value);
    return (
      splitWords(value) ??
      findings.error(`${path}.${key}`, "The command has an unclosed quote or a trailing backslash.")
    );
  };
  const [entrypoint, cmd] = [words("entrypoint"), words("command")];
  const [user, directory] = [textOf(definition.user), textOf(definition.working_dir)];
  return {
    // Another entry point takes the image's command away.
    ...(entrypoint !== undefined && { entrypoint, cmd: cmd ?? [] }),
    ...(entrypoint === undefined && cmd !== undefined && { cmd }),
    ...(user !== undefined && { user }),
    ...(directory !== undefined && { working_dir: directory }),
  };
}

function guestOf(definition: Mapping, path: string, memoryMb: number, findings: Findings) {
  const limits = at(definition.deploy, "resources", "limits");
  const [memory, cpus] = [at(limits, "memory") ?? definition.mem_limit, at(limits, "cpus") ?? definition.cpus];
  const bytes = memory === undefined ? undefined : bytesOf(memory);
  if (memory !== undefined && bytes === undefined)
    findings.error(path, `\`${String(memory)}\` is not a size, as 512m is.`);
  const deploy = isMapping(definition.deploy) ? definition.deploy : {};
  if (Number(deploy.replicas ?? 1) > 1 || definition.scale !== undefined)
    findings.warn(
      `${path}.deploy.replicas`,
      "The project has one machine of each service. `hibernaut scale count` adds more.",
    );
  for (const key of ["placement", "update_config", "rollback_config", "endpoint_mode", "mode"])
    if (deploy[key] !== undefined) findings.note(`${path}.deploy.${key}`, "No effect: it is for a swarm.");
  return {
    memory_mb: Math.max(LEAST_MEMORY_MB, bytes === undefined ? memoryMb : Math.ceil(bytes / MIB)),
    ...(Number(cpus) > 0 && { cpus: Math.ceil(Number(cpus)) }),
  };
}

function at(value: Value | undefined, ...names: string[]): Value | undefined {
  return names.reduce<Value | undefined>((part, name) => (isMapping(part) ? part[name] : undefined), value);
}

function restartOf(definition: Mapping, path: string, findings: Findings): NonNullable<MachineConfig["restart"]> {
  const condition = textOf(at(definition.deploy, "restart_policy", "condition"));
  const attempts = Number(at(definition.deploy, "restart_policy", "max_attempts"));
  const [word = "no", most] = (textOf(definition.restart) ?? condition ?? "no").split(":");
  const limit = Number(most ?? attempts);
  switch (word) {
    case "no":
    case "none":
    case "false":
      return { policy: "no" };
    case "always":
    case "unless-stopped":
    case "any":
      return { policy: "always" };
    case "on-failure":
      return {
        policy: "on-failure",
        ...(Number.isInteger(limit) && limit > 0 && { max_retries: Math.min(limit, 1000) }),
      };
    default:
      findings.error(`${path}.restart`, `There is no restart policy ${word}.`);
      return { policy: "no" };
  }
}

function stopOf(definition: Mapping, path: string, findings: Findings) {
  const [signal, grace] = [textOf(definition.stop_signal), definition.stop_grace_period];
  const seconds = grace === undefined ? undefined : secondsOf(grace);
  if (grace !== undefined && seconds === undefined)
    findings.error(`${path}.stop_grace_period`, "Write a duration, as in 30s.");
  if (seconds !== undefined && seconds > MOST_STOP_S)
    findings.warn(`${path}.stop_grace_period`, `A machine has at most ${MOST_STOP_S} seconds to stop.`);
  return {
    ...(signal !== undefined && { signal: signal.startsWith("SIG") ? signal : `SIG${signal}` }),
    ...(seconds !== undefined && { timeout: Math.min(MOST_STOP_S, Math.max(1, Math.round(seconds))) }),
  };
}
