/**
 * `POST .../machines/{machine_id}/{start,stop,suspend,restart}`, and `cordon` and `uncordon`. The reply says that the action was accepted and stored;
 * the machine carries it out afterwards, and the `wait` route waits for the result.
 */
import type { ServerResponse } from "node:http";
import type { StopConfig } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import { STOP_TIMEOUT_S } from "@hibernaut/domain/limits";
import type { FastifyReply, FastifyRequest } from "fastify";
import { Type } from "typebox";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { closed, machineState, NoBody, Ok, signalName } from "../schemas.ts";
import { MachineParams } from "./machines.schemas.ts";

const route = routesOf("machines");

/** A start. No body is the same as an empty one. */
const StartBody = Type.Object(
  {
    reason: Type.Optional(
      Type.String({ maxLength: 200, description: "Why, for the machine's history; for example `exec`." }),
    ),
  },
  { ...closed, title: "StartRequest" },
);

/** A stop, or that of a restart. No body is the same as an empty one. */
const StopBody = Type.Object(
  {
    signal: Type.Optional(signalName("Asks the app to exit, in place of the machine's `stop_config.signal`.")),
    timeout: Type.Optional(
      Type.Integer({
        ...STOP_TIMEOUT_S,
        description:
          "Seconds after which the app is killed, in place of `stop_config.timeout`. Open requests get no more time, either.",
      }),
    ),
  },
  { ...closed, title: "StopRequest" },
);

const StartReply = Type.Object({ ok: Type.Literal(true), previous_state: machineState }, closed);

/** Registers the actions of machines. */
export function actionRoutes(
  app: Api,
  { machines, guestApi, sandboxes }: Pick<ApiDeps, "machines" | "guestApi" | "sandboxes">,
): void {
  const path = "/v1/apps/:app_name/machines/:machine_id";
  const shapes = { params: MachineParams, optionalBody: NoBody, reply: Ok };

  app.post(
    `${path}/start`,
    route(
      "Resume or cold start a machine",
      { scope: ["exec", "deploy"] },
      { params: MachineParams, optionalBody: StartBody, reply: StartReply },
    ),
    async ({ params, body }) => {
      const { previousState } = machines.start(params.app_name, params.machine_id, body);
      sandboxes?.()?.resumed(params.app_name, params.machine_id);
      return { ok: true as const, previous_state: previousState };
    },
  );

  // A machine may suspend or stop itself, through its local API.
  const ofItself = { scope: "deploy", inside: "self" } as const;
  const requester = ({ insideMachine }: Pick<FastifyRequest, "insideMachine">, reply: FastifyReply) => {
    if (insideMachine === null) return {};
    guestApi.awaitReply(insideMachine, sent(reply.raw));
    return { by: "itself" } as const;
  };

  app.post(`${path}/suspend`, route("Suspend a machine to a snapshot", ofItself, shapes), async (request, reply) => {
    const { app_name: appName, machine_id: id } = request.params;
    machines.suspend(appName, id, requester(request, reply));
    // One that pauses itself would outlive the time that its owner gave it.
    if (request.insideMachine === null) sandboxes?.()?.paused(appName, id);
    return { ok: true as const };
  });

  const stopShapes = { ...shapes, optionalBody: StopBody };
  const audited = ["signal", "timeout"];

  app.post(
    `${path}/stop`,
    route("Stop a machine and discard its snapshot", { ...ofItself, audited }, stopShapes),
    async (request, reply) => {
      const { app_name: appName, machine_id: id } = request.params;
      if (request.insideMachine !== null) refuseTerms(request.body);
      machines.stop(appName, id, requester(request, reply), request.body);
      return { ok: true as const };
    },
  );

  app.post(
    `${path}/restart`,
    route("Stop a machine and start it from scratch", { scope: "deploy", audited }, stopShapes),
    async ({ params, body }) => {
      machines.restart(params.app_name, params.machine_id, body);
      return { ok: true as const };
    },
  );

  // What the proxy does with a machine. Its state stays.
  for (const [action, summary] of [
    ["cordon", "Give a machine no more requests, and neither wake it nor put it to sleep"],
    ["uncordon", "Give a cordoned machine requests again"],
  ] as const)
    app.post(`${path}/${action}`, route(summary, { scope: "deploy" }, shapes), async ({ params }) => {
      machines.cordon(params.app_name, params.machine_id, { on: action === "cordon" });
      return { ok: true as const };
    });
}

/** A machine must not choose how long its own end takes, or which signal it gets: that is for its owner to say. */
function refuseTerms(terms: StopConfig = {}): void {
  const field = Object.keys(terms)[0];
  if (field === undefined) return;
  const message = `A machine cannot say how it is stopped, only that it is. Leave ${field} out; \`stop_config\` of the machine says how.`;
  throw new HibernautError("permission_denied", message, { field });
}

/** Settles when the reply is sent, or its client is gone. */
export function sent(reply: ServerResponse): Promise<void> {
  return new Promise((resolve) => reply.once("close", resolve).once("finish", resolve));
}
