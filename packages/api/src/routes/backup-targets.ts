/** `/v1/platform/backups/targets`: where backups are kept, and what is there. */
import type { SetView, TargetView } from "@hibernaut/backup";
import { HibernautError } from "@hibernaut/domain/errors";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { NoBody, Ok } from "../schemas.ts";
import {
  AddTargetBody,
  CheckBody,
  NewTargetReply,
  SetList,
  type SetWire,
  TargetList,
  TargetParams,
  TargetReply,
  type TargetWire,
  UpdateTargetBody,
} from "./backup-targets.schemas.ts";

const route = routesOf("platform");

/** Registers the routes of targets. Keys and credentials can be stored but never read. */
export function backupTargetRoutes(app: Api, { backupTargets: targets }: Pick<ApiDeps, "backupTargets">): void {
  const all = "/v1/platform/backups/targets";
  const path = `${all}/:target`;

  app.get(all, route("List the targets of backups", { scope: "read" }, { reply: TargetList }), async () => ({
    targets: (await targets.list()).map(targetWire),
  }));

  app.post(
    all,
    route(
      "Add a target for backups, once its repository was opened or made",
      { scope: "admin", audited: ["name", "url", "schedule", "keep"] },
      { body: AddTargetBody, created: NewTargetReply },
    ),
    async ({ body }, reply) => {
      const { access_key: accessKey, secret_key: secretKey, ssh_key: sshKey, ...rest } = body;
      const { target, key } = await targets.add({ ...rest, accessKey, secretKey, sshKey }, clientGone(reply));
      return reply
        .code(201)
        .header("cache-control", "no-store")
        .send({ target: targetWire(target), key });
    },
  );

  app.get(
    path,
    route("Show a target of backups", { scope: "read" }, { params: TargetParams, reply: TargetReply }),
    async ({ params }) => targetWire(await targets.get(params.target)),
  );

  app.patch(
    path,
    route(
      "Change when backups are made, and which are kept",
      { scope: "admin", audited: ["schedule", "keep"] },
      { params: TargetParams, body: UpdateTargetBody, reply: TargetReply },
    ),
    async ({ params, body }) => targetWire(await targets.update(params.target, body)),
  );

  app.delete(
    path,
    route(
      "Forget a target of backups; what is stored there stays",
      { scope: "admin" },
      { params: TargetParams, reply: Ok },
    ),
    async ({ params }) => {
      await targets.remove(params.target);
      return { ok: true as const };
    },
  );

  app.get(
    `${path}/sets`,
    route("List the backups at a target, newest first", { scope: "read" }, { params: TargetParams, reply: SetList }),
    async ({ params }, reply) => ({ sets: (await targets.sets(params.target, clientGone(reply))).map(setWire) }),
  );

  app.post(
    `${path}/run`,
    route(
      "Begin a backup to a target",
      { scope: "admin" },
      { params: TargetParams, optionalBody: NoBody, reply: TargetReply },
    ),
    async ({ params }) => targetWire(await targets.start(params.target)),
  );

  app.delete(
    `${path}/run`,
    route("Cancel the backup or the check that runs", { scope: "admin" }, { params: TargetParams, reply: Ok }),
    async ({ params }) => {
      if (await targets.cancel(params.target)) return { ok: true as const };
      throw new HibernautError("failed_precondition", `Nothing runs at the target ${params.target}.`);
    },
  );

  app.post(
    `${path}/check`,
    route(
      "Begin a check of what is stored at a target",
      { scope: "admin", audited: ["read_data"] },
      { params: TargetParams, optionalBody: CheckBody, reply: TargetReply },
    ),
    async ({ params, body }) => targetWire(await targets.startCheck(params.target, body.read_data ?? false)),
  );
}

function targetWire({ last, lastCheck, running, failures: _, ...target }: TargetView): TargetWire {
  return {
    ...{ name: target.name, url: target.url, kind: target.kind, added_at: target.addedAt },
    ...{ schedule: target.schedule, keep: target.keep, next_at: target.nextAt, overdue: target.overdue },
    running: running && { phase: running.phase, started_at: running.startedAt },
    last: last && {
      ...{ started_at: last.startedAt, ended_at: last.endedAt, state: last.state, set: last.set },
      ...{ bytes: last.bytes, added: last.added, changed: last.changed, error: last.error },
    },
    last_success: target.lastSuccess,
    last_check: lastCheck && { at: lastCheck.at, read_data: lastCheck.readData, error: lastCheck.error },
    prune_error: target.pruneError,
  };
}

function setWire(set: SetView): SetWire {
  return { ...set };
}
