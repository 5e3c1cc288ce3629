/** Makes every host of a cluster answer every request: the hooks that send requests on to the host that has what they are about. */
import { hostSilent } from "@hibernaut/cluster";
import { HibernautError, isHibernautError } from "@hibernaut/domain/errors";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Api, ApiCluster, ApiDeps } from "../deps.ts";
import { askHosts } from "./ask-hosts.ts";
import { updateToSend } from "./file-images.ts";
import { answerForAll } from "./for-all.ts";
import { locate } from "./locate.ts";
import { placeRequests } from "./placed.ts";
import { tellSecretsEffect } from "./secrets-effect.ts";
import { MOVED_HEADER, sendOn } from "./send-on.ts";
import { keepUpgradeHeads, sendOnUpgrade } from "./send-on-upgrade.ts";
import { type Where, whereOf } from "./where.ts";

type SendDeps = Pick<ApiDeps, "volumes" | "templates" | "apps" | "machines">;

/** Registers the hooks. Call it after the hook that finds the token, and before the one that audits. */
export function sendRequests(app: Api, cluster: ApiCluster, deps: SendDeps): void {
  const { shared, view, client } = cluster;
  const ask = askHosts({ host: shared.host, view, client });
  const heads = keepUpgradeHeads(app);
  const ownVolumes = (name: string) => (deps.apps.has(name) ? deps.volumes.list(name) : []);
  const hasVolume = (name: string, word: string) =>
    ownVolumes(name).some((each) => each.id === word || each.name === word || each.id.startsWith(word));

  const hasTemplate = (name: string, word: string) => found(() => deps.templates.get(name, word)) !== undefined;
  const hasMachine = (name: string, id: string) => found(() => deps.machines.get(name, id))?.record.id === id;

  app.addHook("onRequest", async (request, reply) => {
    if (request.insideMachine !== null) return undefined;
    await knowApp(request);
    const where = whereOf(request);
    const host = await locate(request, where, { cluster, ask, hasVolume, hasTemplate, hasMachine });
    if (host === undefined) return undefined;
    if (request.peer !== null) throw moved(request, reply, host);
    return sendTo(request, reply, host, where);
  });
  placeRequests(app, {
    ...{ cluster, ask, ownVolumes, hasTemplate },
    requireStart: (...wanted) => deps.templates.requireStart(...wanted),
  });
  tellSecretsEffect(app, ask);
  answerForAll(app, { ask, client, host: shared.host, view });

  /** An app may have been created through another host a moment ago. */
  async function knowApp({ params }: FastifyRequest): Promise<void> {
    const { app_name: name } = (params ?? {}) as { app_name?: string };
    if (name !== undefined && !deps.apps.has(name)) await shared.catchUp();
  }

  async function sendTo(
    request: FastifyRequest,
    reply: FastifyReply,
    host: string,
    where: Where,
  ): Promise<FastifyReply> {
    if (view.host(host)?.up === undefined) throw hostSilent(host, "it is away");
    if (wantsUpgrade(request)) return sendOnUpgrade(request, reply, { client, host, heads });
    const again = async () => {
      await shared.catchUp();
      const next = await locate(request, where, { cluster, ask, hasVolume, hasTemplate, hasMachine });
      return next === host ? undefined : next;
    };
    const adapt = isUpdate(request) ? (body: Buffer) => updateToSend(request, body, cluster) : undefined;
    return sendOn(request, reply, { client, host, again, ...(adapt && { adapt }) });
  }
}

/** What `find` returns; undefined when it throws that there is no such thing here. */
function found<T>(find: () => T): T | undefined {
  try {
    return find();
  } catch (error) {
    if (isHibernautError(error, "not_found")) return undefined;
    throw error;
  }
}

function isUpdate({ method, routeOptions: { url } }: FastifyRequest): boolean {
  return method === "POST" && url === "/v1/apps/:app_name/machines/:machine_id";
}

/** An offer of another protocol alone, such as `h2c`, is not an upgrade without its word in `Connection` (RFC 9110 7.8). */
function wantsUpgrade({ headers }: FastifyRequest): boolean {
  const tokens = (headers.connection ?? "").toLowerCase().split(",");
  return headers.upgrade !== undefined && tokens.some((token) => token.trim() === "upgrade");
}

function moved({ params }: FastifyRequest, reply: FastifyReply, host: string): HibernautError {
  const { machine_id: id } = params as { machine_id?: string };
  reply.header(MOVED_HEADER, host);
  const message = `Machine ${id ?? ""} is on host ${host} by now. Try again.`;
  return new HibernautError("moved", message, { machine_id: id, host });
}
