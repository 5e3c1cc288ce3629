/**
 * `POST .../machines/{machine_id}/{start,stop,suspend,restart}`, and `cordon` and `uncordon`. The reply says that the action was accepted and stored;
 * the machine carries it out afterwards, and the `wait` route waits for the result.
 */
import type { ServerResponse } from "node:http";
import { Type } from "typebox";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { closed, machineState, NoBody, Ok } from "../schemas.ts";
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

  for (const [action, summary] of [
    ["suspend", "Suspend a machine to a snapshot"],
    ["stop", "Stop a machine and discard its snapshot"],
    ["restart", "Stop a machine and start it from scratch"],
  ] as const) {
    // A machine may suspend or stop itself, through its local API.
    const config = { scope: "deploy", ...(action !== "restart" && { inside: "self" as const }) } as const;
    app.post(`${path}/${action}`, route(summary, config, shapes), async ({ params, insideMachine }, reply) => {
      const { app_name: appName, machine_id: id } = params;
      if (insideMachine !== null) guestApi.awaitReply(insideMachine, sent(reply.raw));
      if (action === "restart") machines.restart(appName, id);
      else machines[action](appName, id, insideMachine === null ? {} : { by: "itself" });
      // One that pauses itself would outlive the time that its owner gave it.
      if (action === "suspend" && insideMachine === null) sandboxes?.()?.paused(appName, id);
      return { ok: true as const };
    });
  }

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

/** Settles when the reply is sent, or its client is gone. */
export function sent(reply: ServerResponse): Promise<void> {
  return new Promise((resolve) => reply.once("close", resolve).once("finish", resolve));
}
