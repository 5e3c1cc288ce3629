/** Chooses a host for what is created, and sends the request there. */
import type { IncomingMessage } from "node:http";
import { type Candidate, place, type Wanted } from "@hibernaut/cluster";
import { guestSize, type MachineConfig } from "@hibernaut/domain/config";
import { HibernautError, isHibernautError } from "@hibernaut/domain/errors";
import { newMachineName } from "@hibernaut/machines";
import type { VolumeView } from "@hibernaut/volumes";
import type { FastifyReply, FastifyRequest } from "fastify";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiCluster } from "../deps.ts";
import type { VolumeWire } from "../routes/volumes.schemas.ts";
import { type AskHosts, read } from "./ask-hosts.ts";
import { isOnHost, mayNameFiles, withDigest } from "./file-images.ts";
import { replied, sentOn } from "./headers.ts";
import { templateHost } from "./locate.ts";
import { namedMachine } from "./named-machines.ts";
import { pass } from "./send-on.ts";
import {
  bringTemplate,
  isMissingThere,
  type KnownTemplate,
  knownTemplate,
  type RequireStart,
  saysMissing,
} from "./templates.ts";
import { whereOf } from "./where.ts";

/** How many hosts are tried: what the directory says of a host's memory is some seconds old. */
const MAX_TRIES = 3;
/** A host that answers so has not created anything, and another one may. */
const TRY_ANOTHER = new Set(["host_full", "draining"]);

interface PlaceDeps {
  cluster: ApiCluster;
  ask: AskHosts;
  /** The volumes that this host has of an app. */
  ownVolumes(app: string): readonly VolumeView[];
  /** Whether this host has this template. */
  hasTemplate(app: string, word: string): boolean;
  requireStart: RequireStart;
}

/** What creates a machine, a volume or a template. */
interface CreateBody {
  template?: string;
  from?: string | MachineConfig;
  name?: string;
  host?: string;
  region?: string;
  config?: MachineConfig;
  snapshot_id?: string;
  source_volume_id?: string;
  skip_launch?: boolean;
}

/** A volume of some host, as far as it matters here. */
interface PlacedVolume {
  host: string;
  id: string;
  name: string;
  isFree: boolean;
}

/** Registers the hook. It runs when the body has been read and checked. */
export function placeRequests(app: Api, { cluster, ask, ownVolumes, hasTemplate, requireStart }: PlaceDeps): void {
  const { shared, view, client, images, templates } = cluster;
  /** What is being created now, by app and host: the directory does not have it yet. */
  const coming = new Map<string, number>();

  app.addHook("preHandler", async (request, reply) => {
    if (whereOf(request) !== "placed" || request.peer !== null || request.insideMachine !== null) return undefined;
    const { app_name: name } = request.params as { app_name: string };
    const { from, ...others } = request.body as CreateBody;
    const body = typeof from === "object" ? { ...others, config: from } : others;
    if (typeof from === "string") {
      const host = (await namedMachine(name, from, cluster))?.host;
      return host === undefined ? undefined : tryEach(request, reply, { hosts: [host] });
    }
    if (body.template !== undefined) return placeBorn(request, reply, { ...body, template: body.template });
    // A snapshot is where its volume is, and a copy is made where that is: this host is asked first.
    if (body.host === undefined && (body.snapshot_id ?? body.source_volume_id) !== undefined) return undefined;
    // The body of a template has its configuration elsewhere: the host of the file makes it.
    const file = body.host === undefined && isOnHost(body.config?.image);
    if (file && typeof from === "object") return undefined;
    if (file && !mayNameFiles(request)) return undefined;
    const wanted: Wanted = {
      app: name,
      name: body.name ?? newMachineName(),
      memoryMb: body.config === undefined ? 0 : guestSize(body.config).memoryMb,
      ...{ host: body.host, region: body.region },
      volumeHost: await volumeHost(request, name, body),
    };
    // What is made of a file of this host is made here, if this host takes machines.
    if (file && wanted.volumeHost === undefined && view.host(shared.host)?.up?.draining !== true) return undefined;
    const hosts = place(candidates(name), wanted).slice(0, MAX_TRIES);
    return tryEach(request, reply, { hosts, file });
  });

  /** A machine from a template: on a host that has it, if there is room, and otherwise on one that can get it. */
  async function placeBorn(
    request: FastifyRequest,
    reply: FastifyReply,
    body: CreateBody & { template: string },
  ): Promise<FastifyReply | undefined> {
    const { app_name: appName } = request.params as { app_name: string };
    const template = await knownTemplate(appName, body.template, cluster);
    if (template === undefined) {
      const host = await templateHost(request, appName, body.template, { cluster, ask, hasTemplate });
      return host === undefined ? undefined : tryEach(request, reply, { hosts: [host] });
    }
    const { id, name, taken } = template;
    const wanted: Wanted = {
      ...{ app: appName, name: body.name ?? newMachineName(), memoryMb: taken.memory_mb },
      ...{ host: body.host, region: body.region },
      template: { id, name, hosts: template.hosts, refusal: (host) => templates.refusalOn(template, host) },
    };
    return tryEach(request, reply, { hosts: place(candidates(appName), wanted).slice(0, MAX_TRIES), template });
  }

  function candidates(name: string): Candidate[] {
    const machines = view.machines(name);
    return view.hosts().map((host) => ({
      ...host,
      ofApp:
        machines.filter((machine) => machine.host === host.name).length + (coming.get(`${name} ${host.name}`) ?? 0),
    }));
  }

  /** Returns undefined to create it here. */
  async function tryEach(
    request: FastifyRequest,
    reply: FastifyReply,
    { hosts, file = false, template }: { hosts: readonly string[]; file?: boolean; template?: KnownTemplate },
  ): Promise<FastifyReply | undefined> {
    const { app_name: name } = request.params as { app_name: string };
    for (const [index, host] of hosts.entries()) {
      const isLast = index === hosts.length - 1;
      if (host === shared.host) {
        // Another host may have refused it before: it is this one's to audit now.
        request.sentOnTo = null;
        if (template === undefined || isLast || (await comesHere(template, request, reply))) return undefined;
        continue;
      }
      const key = `${name} ${host}`;
      coming.set(key, (coming.get(key) ?? 0) + 1);
      const over = () => {
        const left = (coming.get(key) ?? 1) - 1;
        if (left === 0) coming.delete(key);
        else coming.set(key, left);
      };
      const response = await send(request, reply, { host, file, template }).finally(over);
      const { statusCode: status = 502 } = response;
      if (isLast || (status !== 503 && (template === undefined || status < 400))) return pass(reply, response, host);
      const text = await read(response);
      const { error, details } = JSON.parse(text) as { error: string; details?: Record<string, unknown> };
      if (!TRY_ANOTHER.has(error) && (template === undefined || !saysMissing(error, details)))
        return reply.code(status).headers(replied(response.headers, host)).send(text);
    }
    return undefined;
  }

  /** Brings a template here. Resolves with false when another host has to do without this one. */
  async function comesHere(
    { app: appName, id }: KnownTemplate,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<boolean> {
    const { skip_launch: skipLaunch } = request.body as CreateBody;
    const starts = skipLaunch === true ? {} : { requireStart };
    try {
      await bringTemplate(appName, id, { cluster, ...starts }, clientGone(reply));
      return true;
    } catch (error) {
      if (!isMissingThere(error) && !(isHibernautError(error) && TRY_ANOTHER.has(error.code))) throw error;
      return false;
    }
  }

  async function send(
    request: FastifyRequest,
    reply: FastifyReply,
    { host, file, template }: { host: string; file: boolean; template?: KnownTemplate | undefined },
  ): Promise<IncomingMessage> {
    const given = request.body as CreateBody;
    // A name, or the beginning of an id, may mean something else to a host that does not have it.
    const named = template === undefined ? given : { ...given, template: template.id };
    const made = file ? await withDigest(named, images) : named;
    request.sentOnTo = host;
    const body = Buffer.from(JSON.stringify(made));
    const headers = { ...sentOn(request), "content-type": "application/json" };
    const { method, url: path } = request;
    return client.send(host, { method, path, headers, body, signal: clientGone(reply) });
  }

  /**
   * The host that has the volumes which a configuration names: by an id, or by the name of free ones. Undefined when it names
   * none, or new ones. The host that was asked for comes first.
   */
  async function volumeHost(
    request: FastifyRequest,
    name: string,
    { config, host: wished }: Pick<CreateBody, "config" | "host">,
  ): Promise<string | undefined> {
    const words = (config?.mounts ?? []).flatMap(({ volume, source }) => volume ?? source ?? []);
    if (words.length === 0) return undefined;
    const { answers, missing } = await ask(request, { path: `/v1/apps/${encodeURIComponent(name)}/volumes` });
    const theirs: PlacedVolume[] = answers.flatMap(({ host, body }) =>
      (body as Pick<VolumeWire, "id" | "name" | "attached_machine_id" | "newer_on">[])
        .filter(({ newer_on: newer }) => newer === undefined)
        .map(({ id, name: other, attached_machine_id: machine }) => ({
          host,
          id,
          name: other,
          isFree: machine === null,
        })),
    );
    const own = ownVolumes(name)
      .filter(({ newerOn }) => newerOn === undefined)
      .map(({ machineId, ...volume }): PlacedVolume => ({ host: shared.host, ...volume, isFree: machineId === null }));
    const hosts = words.map((word) =>
      [...theirs, ...own].filter(({ id, name: other, isFree }) => id === word || (other === word && isFree)),
    );
    const possible = hosts.filter((each) => each.length > 0).map((each) => new Set(each.map(({ host }) => host)));
    const [first, ...others] = possible;
    if (first === undefined && missing.length === 0) return undefined;
    const both = [...(first ?? [])].filter((host) => others.every((each) => each.has(host)));
    const chosen = both.find((host) => host === wished) ?? both.toSorted()[0];
    if (chosen !== undefined) return chosen;
    if (missing.length > 0) {
      const message = `${missing.join(", ")} did not answer, and may have the volume ${words.join(", ")}. See \`hibernaut cluster status\`, and try again.`;
      throw new HibernautError("host_unreachable", message, { hosts: missing });
    }
    throw new HibernautError(
      "failed_precondition",
      `The volumes ${words.join(", ")} are on different hosts, and a machine runs on one. Use volumes of one host: \`hibernaut volumes list --app ${name}\`.`,
      { volumes: words },
    );
  }
}
