/** Which host answers a request. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { FastifyRequest } from "fastify";
import type { ApiCluster } from "../deps.ts";
import type { VolumeWire } from "../routes/volumes.schemas.ts";
import type { Answer, AskHosts } from "./ask-hosts.ts";
import { namedMachine } from "./named-machines.ts";
import { type KnownTemplate, knownTemplate } from "./templates.ts";
import type { Where } from "./where.ts";

/** The ID of a machine, and not the beginning of one. */
const WHOLE_ID = /^[0-9a-f]{14}$/;

interface LocateDeps {
  cluster: ApiCluster;
  ask: AskHosts;
  /** Whether this host has a machine or volume that the directory does not know, such as a destroyed machine. */
  hasVolume(app: string, word: string): boolean;
  /** Whether this host has this template. */
  hasTemplate(app: string, word: string): boolean;
  /** Whether this host knows the machine of this whole id. */
  hasMachine(app: string, id: string): boolean;
}

/** Returns the host; undefined when it is this one. */
export async function locate(request: FastifyRequest, where: Where, deps: LocateDeps): Promise<string | undefined> {
  const params = request.params as Record<string, string>;
  const { app_name: app = "" } = params;
  if (where === "machine") {
    const word = params.machine_id ?? "";
    return (await ownerOf(app, word, deps)) ?? formerOwner(request, app, word, deps);
  }
  if (where === "host") return hostOf(params.host ?? "", deps.cluster);
  if (where === "release") return other(deps.cluster.shared.reporterOf(app, Number(params.version)), deps.cluster);
  if (where === "volume") return volumeHost(request, app, params.volume_id ?? "", deps);
  if (params.template !== undefined) return templateHost(request, app, params.template, deps);
  return undefined;
}

/** A name that no host has is answered here, by the route. */
function hostOf(name: string, cluster: ApiCluster): string | undefined {
  return cluster.view.host(name) === undefined ? undefined : other(name, cluster);
}

async function ownerOf(app: string, word: string, { cluster, hasMachine }: LocateDeps): Promise<string | undefined> {
  const { shared } = cluster;
  const machine = await namedMachine(app, word, cluster);
  if (machine?.host !== shared.host) return machine?.host;
  if (hasMachine(app, machine.id)) return undefined;
  // Its files are here, and it is being taken in: a client must not believe that it was destroyed.
  const message = `Machine ${machine.id} has just come to host ${shared.host}, which does not have it ready yet. Try again in a moment.`;
  throw new HibernautError("unavailable", message, { machine_id: machine.id, host: shared.host, retry_after_s: 1 });
}

/** The directory forgets destroyed machines. The host that had one still tells what became of it, by its whole id. */
async function formerOwner(
  request: FastifyRequest,
  app: string,
  id: string,
  { cluster, ask, hasMachine }: LocateDeps,
): Promise<string | undefined> {
  if (request.peer !== null || !WHOLE_ID.test(id) || cluster.view.owner(id) !== undefined) return undefined;
  if (hasMachine(app, id)) return undefined;
  const path = `/v1/apps/${encodeURIComponent(app)}/machines/${id}`;
  const { answers } = await ask(request, { path, onlyOk: true });
  return answers[0]?.host;
}

/** Volumes are in no directory: a host that has it says so. After a restore of the directory, another may have an older copy. */
async function volumeHost(
  request: FastifyRequest,
  app: string,
  word: string,
  { ask, hasVolume }: LocateDeps,
): Promise<string | undefined> {
  if (request.peer !== null || hasVolume(app, word)) return undefined;
  const answers = await haveIt(request, { app, word, kind: "volume" }, ask);
  return (answers.find(({ body }) => (body as VolumeWire).newer_on === undefined) ?? answers[0])?.host;
}

/** What any host answers: all that have a template show it, and a deletion is one of the directory. */
const ANYWHERE = new Set(["GET", "HEAD", "DELETE"]);

/**
 * The host that has a template and does something with it; undefined when that is this one, or none. Rejects with
 * `host_unreachable` when it is only on hosts that are away. Hosts of earlier versions are asked: their templates are in no directory.
 */
export async function templateHost(
  request: FastifyRequest,
  app: string,
  word: string,
  { cluster, ask, hasTemplate }: Pick<LocateDeps, "cluster" | "ask" | "hasTemplate">,
): Promise<string | undefined> {
  if (request.peer !== null) return undefined;
  const { shared, view } = cluster;
  const known = await knownTemplate(app, word, cluster);
  if (known === undefined) {
    if (request.method === "GET" || request.method === "HEAD" || hasTemplate(app, word)) return undefined;
    return (await haveIt(request, { app, word, kind: "template" }, ask))[0]?.host;
  }
  const up = known.hosts.filter((host) => view.host(host)?.up !== undefined);
  if (request.method !== "DELETE" && up.length === 0) throw templateAway(known);
  return ANYWHERE.has(request.method) || up.includes(shared.host) ? undefined : up[0];
}

function templateAway({ id, name, hosts }: KnownTemplate): HibernautError {
  const message = `Template ${name} (${id}) is on ${hosts.join(", ")}, and no such host is up. See \`hibernaut cluster status\`, and try again.`;
  return new HibernautError("host_unreachable", message, { template: id, hosts });
}

/** Asks the other hosts for what no directory knows. Rejects with `host_unreachable` when none has it, and one is away. */
async function haveIt(
  request: FastifyRequest,
  { app, word, kind }: { app: string; word: string; kind: "volume" | "template" },
  ask: AskHosts,
): Promise<Answer[]> {
  const path = `/v1/apps/${encodeURIComponent(app)}/${kind}s/${encodeURIComponent(word)}`;
  const { answers, missing } = await ask(request, { path, onlyOk: true });
  if (answers.length > 0 || missing.length === 0) return answers;
  const message = `This host has no ${kind} ${word.slice(0, 80)} of app ${app}, and could not ask ${missing.join(", ")}. See \`hibernaut cluster status\`, and try again.`;
  throw new HibernautError("host_unreachable", message, { hosts: missing });
}

function other(host: string | undefined, { shared }: ApiCluster): string | undefined {
  return host === shared.host ? undefined : host;
}
