/** `.../machines/{machine_id}/signal`: signals to the app of a machine. */
import { Type } from "typebox";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { closed, Ok } from "../schemas.ts";
import { MachineParams } from "./machines.schemas.ts";

const route = routesOf("machines");

/** Longer than the name of any signal, in characters. */
const MOST_NAME = 16;

const SignalBody = Type.Object(
  {
    signal: Type.String({
      pattern: "^SIG[A-Z0-9]+$",
      maxLength: MOST_NAME,
      description: "One of signal(7), such as SIGHUP, SIGINT, SIGTERM, SIGKILL, SIGUSR1, SIGSTOP or SIGWINCH.",
    }),
  },
  { ...closed, title: "SignalRequest" },
);

/** Registers the routes about what runs in a machine. */
export function processRoutes(app: Api, { processes }: Pick<ApiDeps, "processes">): void {
  app.post(
    "/v1/apps/:app_name/machines/:machine_id/signal",
    route(
      "Send a signal to the app of a running machine",
      { scope: ["exec", "deploy"], audited: ["signal"] },
      {
        description:
          "The first process of the app gets it. What follows is up to the app; if it exits, its restart policy decides.",
        params: MachineParams,
        body: SignalBody,
        reply: Ok,
      },
    ),
    async ({ params, body }, reply) => {
      await processes.signal(params.app_name, params.machine_id, body.signal, clientGone(reply));
      return { ok: true as const };
    },
  );
}
