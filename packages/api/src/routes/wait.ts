/** `GET .../machines/{machine_id}/wait`: replies when the machine reaches a state. */
import { HibernautError, isHibernautError } from "@hibernaut/domain/errors";
import { nearest } from "@hibernaut/lib/nearest";
import type { WaitTarget } from "@hibernaut/machines";
import { Type } from "typebox";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { closed, machineState, oneOf, wordsIn, wordsOf } from "../schemas.ts";
import { OpenReplies } from "../stream-replies.ts";
import { MachineParams } from "./machines.schemas.ts";

const route = routesOf("machines");

/** `?state=suspended,failed&timeout=30` */
const WaitQuery = Type.Object(
  {
    state: wordsOf(
      "`running` (or `started`), `stopped`, `suspended`, `destroyed`, `failed`, `created`, `restarting`, or `settled` for any resting state. `healthy`: running, listening on the ports of its services, and all checks pass; `unhealthy`: running, but requests cannot reach it or a check failed. `prewarmed`: no prewarm is in progress, however it ended. Default: `running`.",
    ),
    timeout: Type.Optional(Type.Integer({ minimum: 1, maximum: 300, description: "Seconds. Default: 60." })),
  },
  closed,
);

/** Values of `state`. `started` is Fly's word for running. */
const TARGETS: ReadonlyMap<string, WaitTarget> = new Map([
  ["running", "running"],
  ["started", "running"],
  ["stopped", "stopped"],
  ["suspended", "suspended"],
  ["destroyed", "destroyed"],
  ["failed", "failed"],
  ["created", "created"],
  ["restarting", "restarting"],
  ["settled", "settled"],
  ["healthy", "healthy"],
  ["unhealthy", "unhealthy"],
  ["prewarmed", "prewarmed"],
]);

const WaitReply = Type.Object(
  {
    ok: Type.Literal(true),
    state: machineState,
    /** Which of those that the query names it was. */
    reached: oneOf([...new Set(TARGETS.values())], { title: "WaitState" }),
  },
  closed,
);

const TIMEOUT_S = 60;

/** Registers the wait. A wait ends when its client disconnects or the platform shuts down. */
export function waitRoute(app: Api, { machines }: Pick<ApiDeps, "machines">): void {
  const waits = new OpenReplies(app);

  app.get(
    "/v1/apps/:app_name/machines/:machine_id/wait",
    route(
      "Wait for a state",
      { scope: "read", inside: "self" },
      { params: MachineParams, querystring: WaitQuery, reply: WaitReply },
    ),
    async (request, reply) => {
      const { app_name, machine_id } = request.params;
      const targets = waitTargets(request.query.state);
      const timeoutMs = (request.query.timeout ?? TIMEOUT_S) * 1000;
      const gone = clientGone(reply);
      const signal = AbortSignal.any([gone, waits.closing]);
      const waiting = machines.wait(app_name, machine_id, targets, { timeoutMs, signal });
      try {
        return { ok: true as const, ...(await waits.hold(waiting)) };
      } catch (error) {
        if (waits.closing.aborted)
          throw new HibernautError("unavailable", "The platform is shutting down. Wait again when it is back.");
        // The client is not there to read the reply. Only our own faults are worth logging.
        if (gone.aborted && !isHibernautError(error)) throw gone.reason;
        throw error;
      }
    },
  );
}

/** Returns the states that a query names: repeated, separated by commas, or both. `running` by default. */
function waitTargets(query: string | string[] | undefined): WaitTarget[] {
  const targets = wordsIn(query).map(waitTarget);
  return targets.length === 0 ? ["running"] : [...new Set(targets)];
}

function waitTarget(word: string): WaitTarget {
  const target = TARGETS.get(word);
  if (target !== undefined) return target;
  const known = [...TARGETS.keys()];
  const near = nearest(word, known);
  const hint = near === undefined ? `Use ${known.join(", ")}.` : `Did you mean \`${near}\`?`;
  throw new HibernautError("invalid_argument", `\`${word.slice(0, 100)}\` is not a valid \`state\`. ${hint}`, {
    known,
  });
}
