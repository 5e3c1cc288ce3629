/** Adds to what this host answers what the other hosts have. */
import type { PeerClient, View } from "@hibernaut/cluster";
import { reachesApp } from "@hibernaut/domain/scopes";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Api } from "../deps.ts";
import { filterOf, isWanted } from "../machine-filter.ts";
import type { MachineWire } from "../routes/machines.schemas.ts";
import type { AskHosts } from "./ask-hosts.ts";
import { MISSING_HEADER } from "./headers.ts";
import { lastKnown } from "./last-known.ts";
import { beginAtOnce, mergedStream } from "./merged-stream.ts";
import { MACHINE_LISTS, MERGES } from "./merges.ts";
import { whereOf } from "./where.ts";

/** What this host may know nothing of although others do: a template, and the usage of an app whose machines were always elsewhere. */
const MAYBE_ELSEWHERE: ReadonlySet<string> = new Set(["GET /v1/usage", "GET /v1/apps/:app_name/templates/:template"]);

interface ForAllDeps {
  ask: AskHosts;
  client: PeerClient;
  host: string;
  view: View;
}

/** Registers the hooks. */
export function answerForAll(app: Api, deps: ForAllDeps): void {
  app.addHook("preSerialization", async (request, reply, payload) => {
    const route = `${request.method} ${request.routeOptions.url}`;
    const merge = forAll(request, reply) ? MERGES[route] : undefined;
    if (merge === undefined) return payload;
    const { answers, missing } = await deps.ask(request);
    if (missing.length > 0) reply.header(MISSING_HEADER, missing.join(", "));
    const bodies = [payload, ...answers.map(({ body }) => body)];
    if (MACHINE_LISTS.has(route)) bodies.push(markedUnreachable(request, bodies.flat() as MachineWire[], missing));
    return merge(bodies as never[], request);
  });
  // After the other one, which leaves errors as they are.
  app.addHook("preSerialization", async (request, reply, payload) => {
    const route = `${request.method} ${request.routeOptions.url}`;
    if (reply.statusCode !== 404 || request.peer !== null || !MAYBE_ELSEWHERE.has(route)) return payload;
    const { answers, missing } = await deps.ask(request, { onlyOk: true });
    if (missing.length > 0) reply.header(MISSING_HEADER, missing.join(", "));
    if (answers.length === 0) return payload;
    reply.code(200);
    return MERGES[route]?.(answers.map(({ body }) => body) as never[], request);
  });
  app.addHook("onSend", async (request, reply, payload) => {
    if (whereOf(request) === "all" && request.peer !== null) beginAtOnce(reply, payload);
    return forAll(request, reply) ? mergedStream({ request, reply, payload }, deps) : payload;
  });

  /** The machines of the hosts that did not answer, unless another host has one by now. */
  function markedUnreachable(
    request: FastifyRequest,
    listed: readonly MachineWire[],
    hosts: readonly string[],
  ): MachineWire[] {
    const { app_name: name } = request.params as { app_name?: string };
    const { token } = request;
    const wants = (one: string) => (name === undefined ? token === null || reachesApp(token, one) : one === name);
    const ids = new Set(listed.map(({ id }) => id));
    // The other hosts have left out already what the query does not ask for.
    const filter = filterOf(request.query as Record<string, unknown>);
    return lastKnown(deps.view, { hosts, wants }).filter(
      (machine) => !ids.has(machine.id) && isWanted(machine, filter),
    );
  }
}

function forAll(request: FastifyRequest, reply: FastifyReply): boolean {
  return whereOf(request) === "all" && request.peer === null && reply.statusCode === 200;
}
