/** `/sandboxes` */
import { given } from "@hibernaut/lib/given";
import type { FastifyInstance, FastifyReply } from "fastify";
import type { Static } from "typebox";
import { failureOf, Refusal } from "../failure.ts";
import type { ChosenSandbox } from "../life/chosen.ts";
import { DEFAULT_TIMEOUT_S, DEFAULT_TIMEOUT_V2_S } from "../life/limits.ts";
import { pageOf } from "../life/page.ts";
import { addedHeadersIn } from "../life/rules.ts";
import { detailWire, INSIDE_VERSION, listedWire, type SandboxState, type SandboxView } from "../life/view.ts";
import { type ControlDeps, goneSignal } from "./deps.ts";
import {
  ConnectBody,
  ForkBody,
  ListQuery,
  NetworkBody,
  NewSandbox,
  type PauseBody,
  type RefreshBody,
  type ResumeBody,
  SandboxParams,
  TimeoutBody,
} from "./schemas.ts";

interface ById {
  Params: Static<typeof SandboxParams>;
}

const STATES: readonly string[] = ["running", "paused"] satisfies SandboxState[];

export function sandboxRoutes(app: FastifyInstance, { needs, sandboxes, tokens }: ControlDeps): void {
  const opened = (view: SandboxView) => {
    const { id, sandbox, origin } = view.record;
    return {
      ...{ sandboxID: id, templateID: origin?.template ?? sandbox.template, alias: sandbox.template },
      ...{ clientID: "hibernaut", envdVersion: INSIDE_VERSION, domain: needs.domain },
      ...(sandbox.secure && { envdAccessToken: tokens.of(id, "inside") }),
      ...(sandbox.network?.allow_public_traffic === false && { trafficAccessToken: tokens.of(id, "traffic") }),
    };
  };

  /** Newer clients leave out what the second version of the route has for all: a token, and five minutes. */
  for (const [path, byDefault] of [
    ["/sandboxes", { timeout: DEFAULT_TIMEOUT_S, secure: false }],
    ["/v2/sandboxes", { timeout: DEFAULT_TIMEOUT_V2_S, secure: true }],
  ] as const)
    app.post<{ Body: Static<typeof NewSandbox> }>(path, { schema: { body: NewSandbox } }, async (request, reply) => {
      const chosen = chosenOf({ ...byDefault, ...request.body });
      return reply.code(201).send(opened(await sandboxes.create(request.sandboxApp, chosen, goneSignal(reply))));
    });

  const list = async (
    appName: string,
    query: Static<typeof ListQuery>,
    reply: FastifyReply,
    byDefault?: SandboxState[],
  ) => {
    const { state, nextToken, ...rest } = query;
    const states = state === undefined ? byDefault : statesOf(state);
    const { page, next, running } = pageOf(sandboxes.list(appName), {
      ...rest,
      ...given({ states, after: nextToken }),
    });
    if (next !== undefined) reply.header("X-Next-Token", next);
    if (states?.includes("running") ?? true) reply.header("X-Total-Running", running);
    return page.map(listedWire);
  };
  app.get<{ Querystring: Static<typeof ListQuery> }>(
    "/v2/sandboxes",
    { schema: { querystring: ListQuery } },
    (request, reply) => list(request.sandboxApp, request.query, reply),
  );
  app.get<{ Querystring: Static<typeof ListQuery> }>(
    "/sandboxes",
    { schema: { querystring: ListQuery } },
    (request, reply) => list(request.sandboxApp, request.query, reply, ["running"]),
  );

  const params = SandboxParams;
  app.get<ById>("/sandboxes/:sandboxID", { schema: { params } }, async (request) => {
    const view = sandboxes.get(request.sandboxApp, request.params.sandboxID);
    const token = view.record.sandbox.secure ? tokens.of(view.record.id, "inside") : undefined;
    return detailWire(view, { domain: needs.domain, token });
  });
  app.delete<ById>("/sandboxes/:sandboxID", { schema: { params } }, async (request, reply) => {
    await sandboxes.kill(request.sandboxApp, request.params.sandboxID);
    return reply.code(204).send();
  });
  for (const path of ["/sandboxes/:sandboxID/connect", "/v2/sandboxes/:sandboxID/connect"])
    app.post<ById & { Body: Static<typeof ConnectBody> }>(
      path,
      { schema: { params, body: ConnectBody } },
      async ({ sandboxApp, params: { sandboxID }, body: { timeout = DEFAULT_TIMEOUT_V2_S, memory } }, reply) => {
        const wanted = { timeoutS: timeout, memory };
        const { view, resumed } = await sandboxes.connect(sandboxApp, sandboxID, wanted, goneSignal(reply));
        return reply.code(resumed ? 201 : 200).send(opened(view));
      },
    );
  app.post<ById & { Body: Static<typeof ResumeBody> | null }>(
    "/sandboxes/:sandboxID/resume",
    { schema: { params } },
    async ({ sandboxApp, params: { sandboxID }, body }, reply) => {
      const { view, resumed } = await sandboxes.connect(
        sandboxApp,
        sandboxID,
        { timeoutS: secondsOf(body?.timeout), memory: body?.memory !== false },
        goneSignal(reply),
      );
      if (!resumed) throw new Refusal(409, `Sandbox ${sandboxID} is running already.`);
      return reply.code(201).send(opened(view));
    },
  );
  app.post<ById & { Body: Static<typeof PauseBody> | null }>(
    "/sandboxes/:sandboxID/pause",
    { schema: { params } },
    async ({ sandboxApp, params: { sandboxID }, body }, reply) => {
      await sandboxes.pause(sandboxApp, sandboxID, { memory: body?.memory !== false }, goneSignal(reply));
      return reply.code(204).send();
    },
  );
  app.post<ById & { Body: Static<typeof TimeoutBody> }>(
    "/sandboxes/:sandboxID/timeout",
    { schema: { params, body: TimeoutBody } },
    async (request, reply) => {
      sandboxes.setTimeout(request.sandboxApp, request.params.sandboxID, request.body.timeout);
      return reply.code(204).send();
    },
  );
  app.post<ById & { Body: Static<typeof RefreshBody> | null }>(
    "/sandboxes/:sandboxID/refreshes",
    { schema: { params } },
    async (request, reply) => {
      const seconds = secondsOf(request.body?.duration);
      sandboxes.setTimeout(request.sandboxApp, request.params.sandboxID, seconds, { atLeast: true });
      return reply.code(204).send();
    },
  );
  app.put<ById & { Body: Static<typeof NetworkBody> }>(
    "/sandboxes/:sandboxID/network",
    { schema: { params, body: NetworkBody } },
    async ({ sandboxApp, params: { sandboxID }, body }, reply) => {
      refuseMissing(body);
      const { allowOut, denyOut, allow_internet_access: allowInternetAccess } = body;
      await sandboxes.setEgress(sandboxApp, sandboxID, {
        ...{ allowOut, denyOut, allowInternetAccess },
        added: addedHeadersIn(body.rules),
      });
      return reply.code(204).send();
    },
  );
  app.post<ById & { Body: Static<typeof ForkBody> }>(
    "/sandboxes/:sandboxID/fork",
    { schema: { params, body: ForkBody } },
    async ({ sandboxApp, params: { sandboxID }, body: { count = 1, timeout } }, reply) => {
      const chosen = { count, timeoutS: secondsOf(timeout) };
      const settled = await sandboxes.fork(sandboxApp, sandboxID, chosen, goneSignal(reply));
      return reply
        .code(201)
        .send(
          settled.map((one) =>
            one.status === "fulfilled" ? { sandbox: opened(one.value) } : { error: failureOf(one.reason) },
          ),
        );
    },
  );
}

function chosenOf(body: Static<typeof NewSandbox>): ChosenSandbox {
  const { network, volumeMounts, iam } = body;
  if (iam !== undefined)
    throw new Refusal(501, "There are no workload identities on a server of your own. Leave `iam` out.");
  refuseMissing(network ?? {});
  const { allowOut, denyOut, allowPublicTraffic, maskRequestHost } = network ?? {};
  return {
    template: body.templateID,
    timeoutS: secondsOf(body.timeout),
    onTimeout: body.autoPause === true ? "pause" : "kill",
    keepMemory: body.autoPauseMemory !== false,
    autoResume: body.autoResume?.enabled === true,
    secure: body.secure === true,
    metadata: body.metadata ?? {},
    env: body.envVars ?? {},
    allowInternetAccess: body.allow_internet_access,
    volumes: volumeMounts,
    added: addedHeadersIn(network?.rules),
    network:
      network === undefined
        ? undefined
        : {
            ...given({
              allow_out: allowOut,
              deny_out: denyOut,
              allow_public_traffic: allowPublicTraffic,
              mask_request_host: maskRequestHost,
            }),
          },
  };
}

function refuseMissing({ egressProxy }: Pick<Static<typeof NetworkBody>, "egressProxy">): void {
  if (egressProxy !== undefined) throw new Refusal(501, "Sandboxes use no proxy yet. Leave `network.egressProxy` out.");
}

function statesOf(text: string): SandboxState[] {
  const states = text.split(",");
  const wrong = states.find((state) => !STATES.includes(state));
  if (wrong !== undefined)
    throw new Refusal(400, `A sandbox is never '${wrong}': the states are ${STATES.join(" and ")}.`);
  return states as SandboxState[];
}

/** Bodies that may be absent are checked here. */
function secondsOf(value: unknown): number {
  if (value === undefined) return DEFAULT_TIMEOUT_S;
  if (typeof value === "number" && Number.isInteger(value) && value >= 0) return value;
  throw new Refusal(400, "A time is a whole number of seconds.");
}
