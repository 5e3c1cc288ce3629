/** `/v1/platform/backups/targets`: where backups are kept, and what is there. */
import type { Drill, LastRestore, SetView, TargetView } from "@hibernaut/backup";
import { HibernautError } from "@hibernaut/domain/errors";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { NoBody, Ok } from "../schemas.ts";
import { failedWire } from "./backup.ts";
import {
  AddTargetBody,
  CheckBody,
  DrillBody,
  NewTargetReply,
  RestoreAppBody,
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
export function backupTargetRoutes(
  app: Api,
  { backupTargets: targets, appRestores: restores }: Pick<ApiDeps, "backupTargets" | "appRestores">,
): void {
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
      { scope: "admin", audited: ["schedule", "keep", "drill_schedule"] },
      { params: TargetParams, body: UpdateTargetBody, reply: TargetReply },
    ),
    async ({ params, body: { drill_schedule: drillSchedule, ...rest } }) =>
      targetWire(await targets.update(params.target, { ...rest, drillSchedule })),
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

  app.post(
    `${path}/restore`,
    route(
      "Begin to restore one app from a backup",
      { scope: "admin", audited: ["app_name", "as", "in_place", "set", "at"] },
      { params: TargetParams, body: RestoreAppBody, reply: TargetReply },
    ),
    async ({ params, body: { app_name: name, as, in_place: inPlace, ...choice } }) =>
      targetWire(await restores.restore(params.target, { app: name, as, inPlace, ...choiceOf(choice) })),
  );

  app.post(
    `${path}/drill`,
    route(
      "Begin a drill: restore an app where nobody reaches it, and see whether it works",
      { scope: "admin", audited: ["app_name", "set", "at"] },
      { params: TargetParams, optionalBody: DrillBody, reply: TargetReply },
    ),
    async ({ params, body: { app_name: name, ...choice } }) =>
      targetWire(await restores.drill(params.target, { app: name, ...choiceOf(choice) })),
  );
}

function choiceOf({ set, at }: { set?: string; at?: string }): { set?: string | undefined; at?: number | undefined } {
  return { set, at: at === undefined ? undefined : Date.parse(at) };
}

function targetWire({ last, lastCheck, running, failures: _, ...target }: TargetView): TargetWire {
  return {
    ...{ name: target.name, url: target.url, kind: target.kind, added_at: target.addedAt },
    ...{ schedule: target.schedule, keep: target.keep, next_at: target.nextAt, overdue: target.overdue },
    running: running && { phase: running.phase, started_at: running.startedAt },
    last: last && {
      ...{ started_at: last.startedAt, ended_at: last.endedAt, state: last.state, set: last.set },
      ...{ bytes: last.bytes, added: last.added, changed: last.changed, error: last.error },
      failed_commands: failedWire(last.failedCommands ?? []),
    },
    last_success: target.lastSuccess,
    last_check: lastCheck && { at: lastCheck.at, read_data: lastCheck.readData, error: lastCheck.error },
    prune_error: target.pruneError,
    drill_schedule: target.drillSchedule,
    next_drill_at: target.nextDrillAt,
    drills: target.drills.map(drillWire),
    last_drill: target.lastDrill && drillWire(target.lastDrill),
    last_restore: target.lastRestore && restoreWire(target.lastRestore),
  };
}

function drillWire({ machines, counts, outcome, ...drill }: Drill): TargetWire["drills"][number] {
  return {
    ...{ ...endedWire(drill), outcome },
    machines: machines.map(({ tookMs, ...one }) => ({ ...one, took_ms: tookMs })),
    counts: [...counts],
  };
}

function restoreWire({ machines, as, volumes, replaced, ...restore }: LastRestore): TargetWire["last_restore"] {
  return {
    ...{ ...endedWire(restore), as, volumes, replaced },
    machines: machines.map(({ withoutMemory, ...one }) => ({ ...one, without_memory: withoutMemory })),
  };
}

function endedWire({ startedAt, endedAt, app, set, setAt, error }: Omit<Drill, "machines" | "counts" | "outcome">) {
  return { started_at: startedAt, ended_at: endedAt, app_name: app, set, set_at: setAt, error };
}

function setWire(set: SetView): SetWire {
  return { ...set };
}
