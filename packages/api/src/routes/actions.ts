/**
 * `POST .../machines/{machine_id}/{start,stop,suspend,restart}`, and `cordon` and `uncordon`. The reply says that the action was accepted and stored;
 * the machine carries it out afterwards, and the `wait` route waits for the result.
 */
import type { ServerResponse } from "node:http";
import type { FastifyRequest } from "fastify";
import type { Api, ApiDeps } from "../deps.ts";
import { NoBody, NoQuery, Ok, replies } from "../schemas.ts";
import { StartBody, StartReply } from "./actions.schemas.ts";
import { MachineParams } from "./machines.schemas.ts";

/** Actions that a machine may take on itself, through its local API. */
const ON_ITSELF: ReadonlySet<string> = new Set(["suspend", "stop"]);

/** Registers the actions of machines. */
export function actionRoutes(app: Api, { machines, guestApi }: Pick<ApiDeps, "machines" | "guestApi">): void {
  const schema = { tags: ["machines"], params: MachineParams, querystring: NoQuery, body: NoBody };
  const path = "/v1/apps/:app_name/machines/:machine_id";

  app.post(
    `${path}/start`,
    {
      config: { scope: ["exec", "deploy"] },
      preValidation: allowNoBody,
      schema: {
        ...schema,
        summary: "Resume or cold start a machine",
        body: StartBody,
        response: replies(200, StartReply),
      },
    },
    async ({ params, body }) => {
      const { previousState } = machines.start(params.app_name, params.machine_id, body);
      return { ok: true as const, previous_state: previousState };
    },
  );

  for (const [action, summary] of [
    ["suspend", "Suspend a machine to a snapshot"],
    ["stop", "Stop a machine and discard its snapshot"],
    ["restart", "Stop a machine and start it from scratch"],
  ] as const) {
    app.post(
      `${path}/${action}`,
      {
        config: { scope: "deploy", ...(ON_ITSELF.has(action) && { inside: "self" as const }) },
        preValidation: allowNoBody,
        schema: { ...schema, summary, response: replies(200, Ok) },
      },
      async ({ params, insideMachine }, reply) => {
        const { app_name: appName, machine_id: id } = params;
        if (insideMachine !== null) guestApi.awaitReply(insideMachine, sent(reply.raw));
        if (action === "restart") machines.restart(appName, id);
        else machines[action](appName, id, insideMachine === null ? {} : { by: "itself" });
        return { ok: true as const };
      },
    );
  }
  cordonRoutes(app, { machines });
}

/** `POST .../cordon` and `/uncordon`: what the proxy does with a machine. Its state stays. */
function cordonRoutes(app: Api, { machines }: Pick<ApiDeps, "machines">): void {
  const schema = { tags: ["machines"], params: MachineParams, querystring: NoQuery, body: NoBody };
  for (const [action, summary] of [
    ["cordon", "Give a machine no more requests, and neither wake it nor put it to sleep"],
    ["uncordon", "Give a cordoned machine requests again"],
  ] as const)
    app.post(
      `/v1/apps/:app_name/machines/:machine_id/${action}`,
      {
        config: { scope: "deploy" },
        preValidation: allowNoBody,
        schema: { ...schema, summary, response: replies(200, Ok) },
      },
      async ({ params }) => {
        machines.cordon(params.app_name, params.machine_id, { on: action === "cordon" });
        return { ok: true as const };
      },
    );
}

/** Settles when the reply is sent, or its client is gone. */
export function sent(reply: ServerResponse): Promise<void> {
  return new Promise((resolve) => reply.once("close", resolve).once("finish", resolve));
}

/** Accepts no body in place of `{}`: actions have no parameters yet. */
export async function allowNoBody(request: FastifyRequest): Promise<void> {
  if (request.body === undefined) request.body = {};
}
