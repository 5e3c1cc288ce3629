/** What one service becomes. */
import type { MachineConfig } from "@hibernaut/client";
import { type BuildPlan, buildOf, exposedBy } from "./building.ts";
import { type NeededSecret, readContents } from "./contents.ts";
import type { Findings } from "./findings.ts";
import { checkOf } from "./health.ts";
import { tellKeys } from "./keys.ts";
import { knownImage } from "./known-images.ts";
import { type Ports, reachOf, readExpose, readPorts } from "./ports.ts";
import type { Disk, Project } from "./project.ts";
import { type Dependency, dependenciesOf, linksOf, namesOf } from "./relations.ts";
import { environmentOf, guestOf, initOf, restartOf, stopOf } from "./running.ts";
import { ownOf, type SleepTerms, servicesOf } from "./sleep.ts";
import { type Mapping, textOf } from "./values.ts";
import { readVolumes } from "./volumes.ts";
import { webOf } from "./workers.ts";

/** An app, and the configuration of its machine. */
export interface ServicePlan {
  service: string;
  app: string;
  /** In a preview: the app that it is a preview of. */
  previewOf?: string;
  /** What it is called in the network, besides the app's name. */
  aliases: string[];
  /** Undefined if it is built. */
  image: string | undefined;
  build: BuildPlan | undefined;
  /** Without the image. */
  config: Omit<MachineConfig, "image">;
  secrets: NeededSecret[];
  dependsOn: Dependency[];
  /** The apps that wake with it: those of the services that it depends on, and theirs. */
  wakes: string[];
  /** Other names for other services. */
  links: [service: string, alias: string][];
  ports: Ports;
  /** It ends by itself, and others wait for that. */
  runsOnce: boolean;
  /** It listens nowhere, whatever its image says: by its own word, or because the image is that of another service. */
  worker: false | { of: string | undefined };
  /** When it sleeps, if something could wake it. */
  sleep: SleepTerms;
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
  const exposed = readExpose(definition.expose);
  const named = [...exposed, ...exposedBy(build, parts.disk)];
  if (own.worker === true && published.length + exposed.length > 0)
    findings.error(`${path}.x-hibernaut.worker`, "A worker listens nowhere. Remove `ports` and `expose`, or `worker`.");
  const worker = workerOf(service, own.worker, project);
  if (worker !== false && own.sleep.said && own.sleep.autostop === "stop")
    findings.error(
      `${path}.x-hibernaut.autostop`,
      `A worker that is stopped has nothing to wake by. Write suspend or off.${worker.of === undefined ? "" : " If the service listens, add `expose`."}`,
    );
  if (worker !== false && own.sleep.saidIdle && !own.sleep.said)
    findings.warn(
      `${path}.x-hibernaut.idle_timeout`,
      "It has no effect: a worker sleeps only with `autostop: suspend` as well, because nothing shows that it works while it computes.",
    );
  const listens = worker !== false ? [] : published.length + named.length > 0 ? named : (known?.ports ?? []);
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
    aliases: namesOf(service, definition, path, findings),
    ...{ image, build, ports },
    secrets: contents.secrets,
    dependsOn: dependenciesOf(definition.depends_on, path, findings),
    links: linksOf(definition.links),
    runsOnce: false,
    worker,
    wakes: [],
    sleep: own.sleep,
    config: {
      guest: guestOf(definition, path, known?.memoryMb ?? DEFAULT_MEMORY_MB, findings),
      ...nonEmpty("env", environmentOf(definition, path, parts)),
      ...nonEmpty("init", initOf(definition, path, findings)),
      ...(services.length > 0 && { services }),
      ...(worker !== false && workerSleep(own.sleep)),
      ...(check !== undefined && { checks: { health: check } }),
      restart: restartOf(definition, path, findings),
      ...nonEmpty("stop_config", stopOf(definition, path, findings)),
      // As a container's own files are, until the next version.
      keep_layer: true,
      ...(mounts.length > 0 && { mounts }),
      ...(files.length + contents.files.length > 0 && { files: [...files, ...contents.files] }),
    },
  };
}

function workerOf(service: string, said: boolean | undefined, { services }: Project): ServicePlan["worker"] {
  if (said !== undefined) return said && { of: undefined };
  const web = webOf(service, services);
  return web !== undefined && { of: web };
}

/** A worker sleeps only by its own word: nothing shows that it works while it computes. */
function workerSleep({ autostop, said, idleTimeout }: SleepTerms): Pick<MachineConfig, "worker_idle_timeout"> {
  return said && autostop === "suspend" ? { worker_idle_timeout: idleTimeout } : {};
}

/** The name of the app of a service. */
export function appName(project: string, service: string): string {
  const name = service.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  return `${project}-${name}`.slice(0, 63).replace(/-+$/, "");
}

/** Returns the plan of a service that listens at these ports as well, which only its image says. */
export function withExposed(plan: ServicePlan, exposed: readonly number[]): ServicePlan {
  if (exposed.length === 0 || plan.worker !== false) return plan;
  const ports = { ...plan.ports, inside: [...new Set([...plan.ports.inside, ...exposed])] };
  return { ...plan, ports, config: { ...plan.config, services: servicesOf(ports, plan.sleep) } };
}

/** A part of a configuration, unless nothing is in it. */
function nonEmpty<K extends string>(key: K, value: object): { [P in K]?: never } | { [P in K]: never } {
  return Object.keys(value).length === 0 ? {} : ({ [key]: value } as { [P in K]: never });
}
