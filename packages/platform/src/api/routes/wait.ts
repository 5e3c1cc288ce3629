/** `GET .../machines/{machine_id}/wait`: answers when the machine gets there. */
import { setImmediate } from "node:timers/promises";
import { HibernautError, isHibernautError } from "../../domain/errors.ts";
import type { WaitTarget } from "../../machines/service.ts";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { nearest } from "../../lib/nearest.ts";
import { replies } from "../schemas.ts";
import { MachineParams } from "./machines.schemas.ts";
import { WaitQuery, WaitReply } from "./wait.schemas.ts";

/** Every word that `state` takes; `started` is Fly's for running. */
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
]);

const TIMEOUT_S = 60;

/** Registers the wait. A client that goes away ends its wait, and so does the end of the platform. */
export function waitRoute(app: Api, { machines }: ApiDeps): void {
  const closing = new AbortController();
  const open = new Set<Promise<unknown>>();
  app.addHook("preClose", async () => {
    closing.abort();
    await Promise.allSettled(open);
    // The answers leave before the server cuts its connections.
    await setImmediate();
  });

  app.get(
    "/v1/apps/:app_name/machines/:machine_id/wait",
    {
      config: { inside: "self" },
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
        // Nobody is there to read it; only our own faults are worth a line in the log.
        if (gone.aborted && !isHibernautError(error)) throw gone.reason;
        throw error;
      } finally {
        open.delete(waiting);
      }
    },
  );
}

/** The states that a query names: repeated, comma separated or both; running when it names none. */
export function waitTargets(query: string | string[] | undefined): WaitTarget[] {
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
  const hint = near === undefined ? `Known states are ${known.join(", ")}.` : `Did you mean \`${near}\`?`;
  throw new HibernautError("invalid_argument", `\`state\` knows no \`${word.slice(0, 100)}\`. ${hint}`, { known });
}
