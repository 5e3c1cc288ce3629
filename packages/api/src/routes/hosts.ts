/** Moves of machines between the hosts of a cluster, and what is done with a host as a whole. */
import type { ClusterHosts } from "@hibernaut/cluster";
import { HibernautError } from "@hibernaut/domain/errors";
import type { Api, ApiDeps } from "../deps.ts";
import { sendProgress } from "../progress-lines.ts";
import { routesOf } from "../route.ts";
import { Ok, streamed } from "../schemas.ts";
import { NDJSON, OpenReplies } from "../stream-replies.ts";
import {
  EvacuateBody,
  EvacuateReply,
  HostDrainBody,
  HostDrainEvent,
  HostParams,
  MoveBody,
  MoveEvent,
} from "./hosts.schemas.ts";
import { MachineParams } from "./machines.schemas.ts";

const route = routesOf("platform");

/** Registers the routes. On a host alone they say that there is no other host. */
export function hostsRoutes(app: Api, deps: Pick<ApiDeps, "hosts" | "machines">): void {
  const streams = new OpenReplies(app);
  const hosts = () => deps.hosts ?? notClustered();
  moveRoute(app, deps, { hosts, streams });
  evacuateRoute(app, hosts);
  drainRoutes(app, { hosts, streams });
}

interface Parts {
  hosts(): ClusterHosts;
  streams: OpenReplies;
}

function moveRoute(app: Api, { machines }: Pick<ApiDeps, "machines">, { hosts, streams }: Parts): void {
  app.post(
    "/v1/apps/:app_name/machines/:machine_id/move",
    routesOf("machines")(
      "Move a machine to another host of the cluster, and stream the progress: one JSON object per line, the last one with the step `done`, or `error`",
      { scope: "admin", audited: ["host", "cold", "with_volumes"] },
      {
        params: MachineParams,
        optionalBody: MoveBody,
        response: streamed(200, NDJSON, "one event per line", MoveEvent),
      },
    ),
    async (request, reply) => {
      const { params, body } = request;
      const actions = hosts();
      const { id } = machines.get(params.app_name, params.machine_id).record;
      const { cold = false, with_volumes: withVolumes = false } = body;
      const to = body.host ?? (await actions.anotherHost(id, { cold }));
      return sendProgress<{ step: string }>(
        { request, reply, streams },
        { key: ({ step }) => step },
        async (tell, signal) =>
          actions.move(
            id,
            {
              to,
              cold,
              withVolumes,
              onProgress({ step, bytes, totalBytes }) {
                // Until it is clear that the machine can move, a refusal is an ordinary error.
                if (step !== "check") tell({ step, bytes, total_bytes: totalBytes, host: to } as { step: string });
              },
            },
            signal,
          ),
      );
    },
  );
}

function evacuateRoute(app: Api, hosts: Parts["hosts"]): void {
  app.post(
    "/v1/cluster/hosts/:host/evacuate",
    route(
      "Give the machines of a lost host to other hosts, which start them from scratch",
      { scope: "admin", audited: ["dead"] },
      { params: HostParams, body: EvacuateBody, reply: EvacuateReply },
    ),
    async ({ params }) => ({
      machines: (await hosts().evacuate(params.host)).map(({ machine, app: appName, name, to, reason }) => ({
        ...{ machine_id: machine, app_name: appName, name },
        ...(to !== undefined && { host: to }),
        ...(reason !== undefined && { reason }),
      })),
    }),
  );
}

function drainRoutes(app: Api, { hosts, streams }: Parts): void {
  const path = "/v1/cluster/hosts/:host/drain";
  app.post(
    path,
    route(
      "Move all machines off a host, which takes no new ones from then on, and stream the progress: one JSON object per line, the last one with `done` or `error`",
      { scope: "admin", audited: ["with_volumes"] },
      {
        params: HostParams,
        optionalBody: HostDrainBody,
        response: streamed(200, NDJSON, "one event per line", HostDrainEvent),
      },
    ),
    async (request, reply) => {
      const actions = hosts();
      requireHere(request.params.host, actions);
      return sendProgress<{ machine_id?: string }>(
        { request, reply, streams },
        { key: (line) => line.machine_id ?? "" },
        async (tell, signal) => {
          const { with_volumes: withVolumes = false } = request.body;
          const { moved, stayed } = await actions.drain.run(
            {
              withVolumes,
              onProgress: ({ machine, to, step, bytes, totalBytes }) =>
                tell({ ...machineWire(machine), host: to, step, bytes, total_bytes: totalBytes } as {
                  machine_id: string;
                }),
            },
            signal,
          );
          const left = stayed.map(({ machine, reason }) => ({ ...machineWire(machine), reason }));
          tell({ done: true, moved, stayed: left } as object);
        },
      );
    },
  );
  app.delete(
    path,
    route("Let a drained host take machines again", { scope: "admin" }, { params: HostParams, reply: Ok }),
    async ({ params }) => {
      const actions = hosts();
      requireHere(params.host, actions);
      actions.drain.end();
      return { ok: true as const };
    },
  );
}

function machineWire({ id, app, name }: { id: string; app: string; name: string }) {
  return { machine_id: id, app_name: app, name };
}

/** A request about another host was sent on to it before; what is left is a name that nobody has. */
function requireHere(name: string, { host }: ClusterHosts): void {
  if (name === host) return;
  const message = `Host ${name} cannot be reached through host ${host}. See \`hibernaut cluster status\`.`;
  throw new HibernautError("invalid_argument", message, { field: "host", value: name });
}

function notClustered(): never {
  throw new HibernautError(
    "failed_precondition",
    "This host is not in a cluster, so there is no other host. Make one with `hibernaut cluster init`.",
  );
}
