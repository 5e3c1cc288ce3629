/** The HTTP API: puts routes, tokens, errors, metrics and the document together. */
import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import websocket from "@fastify/websocket";
import type { Write } from "@hibernaut/cluster";
import { TOO_MANY_REQUESTS } from "@hibernaut/connections";
import type { JudgedMachine } from "@hibernaut/domain/app-status";
import { HibernautError } from "@hibernaut/domain/errors";
import { usageMetrics } from "@hibernaut/metering";
import type { TokenRecord } from "@hibernaut/store";
import fastify, { LogController } from "fastify";
import { auditChanges } from "./audit.ts";
import { authorize } from "./auth.ts";
import { limitBodies } from "./body-deadline.ts";
import { readDashboard, sendDashboard } from "./dashboard.ts";
import type { Api, ApiDeps } from "./deps.ts";
import { secureEdges } from "./edges.ts";
import { refuseConnection, sendError, sendNotFound } from "./errors.ts";
import { refuseHostImages } from "./host-images.ts";
import { holdLeases } from "./lease-guard.ts";
import { apiMetrics } from "./metrics.ts";
import { describeApi } from "./openapi.ts";
import { limitRates } from "./rates.ts";
import { requireUpgrades } from "./require-upgrade.ts";
import { requireScopes } from "./route.ts";
import { actionRoutes } from "./routes/actions.ts";
import { activityRoute } from "./routes/activity.ts";
import { appRoutes } from "./routes/apps.ts";
import { archiveRoutes } from "./routes/archive.ts";
import { auditRoute } from "./routes/audit.ts";
import { backupRoutes } from "./routes/backup.ts";
import { backupTargetRoutes } from "./routes/backup-targets.ts";
import { certificateRoutes } from "./routes/certificates.ts";
import { clusterRoutes } from "./routes/cluster.ts";
import { drainRoutes } from "./routes/drain.ts";
import { egressRoutes } from "./routes/egress.ts";
import { execRoute } from "./routes/exec.ts";
import { execStreamRoute } from "./routes/exec-stream.ts";
import { fileRoutes } from "./routes/files.ts";
import { forkRoutes, templateRoutes } from "./routes/forks.ts";
import { forwardRoute } from "./routes/forward.ts";
import { hostRoutes } from "./routes/host.ts";
import { hostnameRoutes } from "./routes/hostnames.ts";
import { hostsRoutes } from "./routes/hosts.ts";
import { imageRoutes } from "./routes/images.ts";
import { insideRoutes } from "./routes/inside.ts";
import { leaseRoutes } from "./routes/leases.ts";
import { logRoutes } from "./routes/logs.ts";
import { machineRoutes } from "./routes/machines.ts";
import { metadataRoutes } from "./routes/metadata.ts";
import { documentRoute, healthRoute, metricsRoute, regionRoute } from "./routes/platform.ts";
import { previewRoutes } from "./routes/previews.ts";
import { processRoutes } from "./routes/processes.ts";
import { quotaRoutes } from "./routes/quota.ts";
import { registryRoutes } from "./routes/registries.ts";
import { releaseRoutes } from "./routes/releases.ts";
import { secretRoutes } from "./routes/secrets.ts";
import { sessionRoutes } from "./routes/session.ts";
import { statusRoute } from "./routes/status.ts";
import { streamRoutes } from "./routes/stream.ts";
import { timelineRoutes } from "./routes/timeline.ts";
import { tokenRoutes } from "./routes/tokens.ts";
import { uploadRoutes } from "./routes/uploads.ts";
import { usageRoutes } from "./routes/usage.ts";
import { volumeRoutes } from "./routes/volumes.ts";
import { waitRoute } from "./routes/wait.ts";
import { webhookRoutes } from "./routes/webhooks.ts";
import { Sessions } from "./sessions.ts";
import { refusePorts } from "./tcp-ports.ts";
import { followTls, serverTls } from "./tls.ts";
import { TokenUse } from "./token-use.ts";
import { compileValidator } from "./validation.ts";
import { handReplies } from "./within.ts";

export type { Api, ApiDeps } from "./deps.ts";

/** A configuration is a few KB; a MiB leaves room for an environment full of certificates. */
const MAX_BODY_BYTES = 1024 * 1024;
/** The longest name in a path, in characters: a hostname has up to 253, and the `*.` of a wildcard is part of them. */
const MAX_NAME = 253;

/**
 * Given to the constructor, because Fastify loads compilers of its own before the setters could replace them. Their types
 * know Ajv's schemas only. Replies are typed by their schemas; checking or filtering them at run time would only cost.
 */
const COMPILERS = {
  buildValidator: () => compileValidator as never,
  buildSerializer: () => () => (data: unknown) => JSON.stringify(data),
};

/** Returns what tells of an app's machines on other hosts. Undefined on a host alone. */
async function elsewhere(cluster: ApiDeps["cluster"]): Promise<((app: string) => JudgedMachine[]) | undefined> {
  if (cluster === undefined) return undefined;
  const { machinesElsewhere } = await import("./cluster/status-elsewhere.ts");
  return (app) => machinesElsewhere(cluster, app);
}

/**
 * Builds the API, ready to `listen` or `inject`. `close` ends open waits with `unavailable`.
 *
 * @example
 * const api = await buildApi({ ...openMachines(deps), images, volumes, tokens: store.tokens, platform, check, logger });
 * await api.listen(settings.apiListen);
 */
export async function buildApi(deps: ApiDeps): Promise<Api> {
  const options = {
    loggerInstance: deps.logger,
    // One line per request, of our own, below.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: MAX_BODY_BYTES,
    // The heads of requests have Node's own limit, 60 s. Bodies have ours, because archives may take longer.
    requestTimeout: 0,
    routerOptions: { maxParamLength: MAX_NAME },
    exposeHeadRoutes: false,
    forceCloseConnections: true,
    genReqId: requestId,
    clientErrorHandler: refuseConnection,
    frameworkErrors: sendError,
    schemaController: { compilersFactory: COMPILERS },
  };
  const { tls } = deps;
  // Both servers have what the API uses of one.
  const app = (tls === undefined ? fastify(options) : fastify({ ...options, https: serverTls(tls) })) as unknown as Api;
  if (tls !== undefined)
    followTls(app, tls, (err) =>
      deps.logger.error({ err }, "the API keeps its certificate: the new one cannot be used"),
    );
  app.setErrorHandler(sendError);
  const dashboard = await readDashboard(deps.dashboard);
  app.setNotFoundHandler((request, reply) => {
    if (!sendDashboard(dashboard, request, reply)) sendNotFound(request, reply);
  });
  acceptOnlyJson(app);
  limitBodies(app);

  const metrics = apiMetrics(deps.machines, deps.registry);
  usageMetrics(metrics.registry, deps.usage, () => deps.apps.list());
  app.addHook("onRequest", async (request, reply) => void reply.header("x-request-id", request.id));
  app.addHook("onResponse", async (request, reply) => {
    metrics.observe(request, reply);
    const { method, url } = request;
    request.log.debug({ method, url, status: reply.statusCode, ms: Math.round(reply.elapsedTime) }, "request");
  });

  secureEdges(app, deps.corsOrigins);
  app.decorateRequest("insideMachine", null);
  app.decorateRequest("peer", null);
  app.decorateRequest("sentOnTo", null);
  app.decorateRequest("token", null);
  app.decorateRequest("session", null);
  const tokenUse = new TokenUse({
    tokens: deps.tokens,
    onFault: (err) => deps.logger.error({ err }, "when tokens were used could not be stored"),
  });
  app.addHook("onClose", async () => tokenUse.write());
  const sessions = new Sessions({
    ...deps,
    onFault: (err) => deps.logger.error({ err }, "when a session was used could not be stored"),
  });
  await app.register(websocket, { options: { maxPayload: MAX_BODY_BYTES } });
  await describeApi(app, deps.platform.version);
  healthRoute(app, deps);
  documentRoute(app);
  statusRoute(app, { apps: deps.apps, elsewhere: await elsewhere(deps.cluster) });
  if (deps.cluster !== undefined) {
    const { peerImageRoute } = await import("./cluster/images.ts");
    peerImageRoute(app, deps.cluster);
    const { peerStreamRoute } = await import("./cluster/events/peer-stream.ts");
    peerStreamRoute(app, deps.cluster, deps);
  }
  const write: Write = deps.cluster?.shared.write ?? (async (work) => work(deps));
  await app.register(async (secured: Api) => {
    requireScopes(secured);
    const local = deps.local ?? new WeakMap();
    const onToken = ({ id }: TokenRecord) => tokenUse.note(id);
    const { cluster } = deps;
    if (cluster !== undefined)
      secured.addHook("onRequest", async (request) => {
        request.peer = cluster.connections.get(request.raw.socket) ?? null;
      });
    secured.addHook("onRequest", authorize({ ...deps, sessions, local, onToken }));
    // Whose request has come this far has a token: nobody without one takes the places of those.
    secured.addHook("onRequest", async ({ raw, token }, reply) => {
      if (token !== null && !deps.places.take(raw, reply.raw, token.id))
        throw new HibernautError("resource_exhausted", TOO_MANY_REQUESTS, { retry_after_s: 1 });
    });
    if (deps.rates !== undefined) await limitRates(secured, deps.rates);
    requireUpgrades(secured);
    if (cluster !== undefined) {
      const { sendRequests } = await import("./cluster/send-requests.ts");
      sendRequests(secured, cluster, deps);
    }
    // After those hooks that put the replies of several hosts together.
    handReplies(secured);
    if (deps.audit !== undefined) auditChanges(secured, deps.audit);
    holdLeases(secured, deps);
    secured.addHook("preHandler", refuseHostImages(deps.machines));
    secured.addHook("preHandler", refusePorts(deps.machines, deps.tcpPorts));
    const writes = { ...deps, write };
    appRoutes(secured, writes);
    previewRoutes(secured, writes);
    machineRoutes(secured, deps);
    actionRoutes(secured, deps);
    egressRoutes(secured, deps);
    leaseRoutes(secured, deps);
    metadataRoutes(secured, deps);
    forkRoutes(secured, deps);
    templateRoutes(secured, deps);
    activityRoute(secured, deps);
    waitRoute(secured, deps);
    logRoutes(secured, deps);
    streamRoutes(secured, deps);
    timelineRoutes(secured, deps);
    execRoute(secured, deps);
    execStreamRoute(secured, deps);
    archiveRoutes(secured, deps);
    fileRoutes(secured, deps);
    forwardRoute(secured, deps);
    processRoutes(secured, deps);
    insideRoutes(secured, deps);
    hostnameRoutes(secured, writes);
    certificateRoutes(secured, deps);
    auditRoute(secured, deps);
    quotaRoutes(secured, writes);
    secretRoutes(secured, writes);
    releaseRoutes(secured, writes);
    volumeRoutes(secured, deps);
    imageRoutes(secured, deps);
    uploadRoutes(secured, deps);
    registryRoutes(secured, deps);
    tokenRoutes(secured, { ...writes, tokenUse });
    webhookRoutes(secured, deps);
    sessionRoutes(secured, { ...deps, sessions, onToken });
    usageRoutes(secured, deps);
    regionRoute(secured, deps);
    hostRoutes(secured, deps);
    drainRoutes(secured, deps);
    hostsRoutes(secured, deps);
    clusterRoutes(secured, deps);
    backupRoutes(secured, deps);
    backupTargetRoutes(secured, deps);
    metricsRoute(secured, metrics.registry);
  });
  await app.ready();
  return app;
}

/** The client's own id when it is harmless to repeat in a header and a log, else a new one. */
function requestId(request: IncomingMessage): string {
  const wanted = request.headers["x-request-id"];
  return typeof wanted === "string" && /^[\w.:-]{1,128}$/.test(wanted) ? wanted : randomUUID();
}

/** An empty body counts as none, whatever its content type says: many clients always send one. */
function acceptOnlyJson(app: Api): void {
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<string>("application/json", { parseAs: "string" }, (request, body, answer) => {
    if (body === "") answer(null, undefined);
    else Promise.resolve(parse(request, body, answer)).catch((error: Error) => answer(error));
  });
}
