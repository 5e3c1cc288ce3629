/** `GET .../machines/{machine_id}/wait`: replies when the machine reaches a state. */
import { setImmediate } from "node:timers/promises";
import { HibernautError, isHibernautError } from "@hibernaut/domain/errors";
import { nearest } from "@hibernaut/lib/nearest";
import type { WaitTarget } from "@hibernaut/machines";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { replies } from "../schemas.ts";
import { MachineParams } from "./machines.schemas.ts";
import { WaitQuery, WaitReply } from "./wait.schemas.ts";

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

const TIMEOUT_S = 60;

/** Registers the wait. A wait ends when its client disconnects or the platform shuts down. */
export function waitRoute(app: Api, { machines }: Pick<ApiDeps, "machines">): void {
  const closing = new AbortController();
  const open = new Set<Promise<unknown>>();
  app.addHook("preClose", async () => {
    closing.abort();
    await Promise.allSettled(open);
    // The replies are sent before the server closes its connections.
    await setImmediate();
  });

  app.get(
    "/v1/apps/:app_name/machines/:machine_id/wait",
    {
      config: { scope: "read", inside: "self" },
      schema: {
        tags: ["machines"],
        summary: "Wait for a state",
        params: MachineParams,
        querystring: WaitQuery,
        response: replies(200, WaitReply),
      },
    },
    async (request, reply) => {
      const { app_name, machine_id } = request.params;
      const targets = waitTargets(request.query.state);
      const timeoutMs = (request.query.timeout ?? TIMEOUT_S) * 1000;
      const gone = clientGone(reply);
      const signal = AbortSignal.any([gone, closing.signal]);
      const waiting = machines.wait(app_name, machine_id, targets, { timeoutMs, signal });
      open.add(waiting);
      try {
        return { ok: true as const, state: await waiting };
      } catch (error) {
        if (closing.signal.aborted)
          throw new HibernautError("unavailable", "The platform is shutting down. Wait again when it is back.");
        // The client is not there to read the reply. Only our own faults are worth logging.
        if (gone.aborted && !isHibernautError(error)) throw gone.reason;
        throw error;
      } finally {
        open.delete(waiting);
      }
    },
  );
}

/** Returns the states that a query names: repeated, separated by commas, or both. `running` by default. */
function waitTargets(query: string | string[] | undefined): WaitTarget[] {
  const words = [query ?? []]
    .flat()
    .flatMap((part) => part.split(","))
    .map((word) => word.trim());
  const targets = words.filter((word) => word !== "").map(waitTarget);
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
