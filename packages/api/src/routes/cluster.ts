/** `/v1/cluster`: the hosts that this one belongs to. */
import type { ClusterStatus } from "@hibernaut/cluster";
import { HibernautError } from "@hibernaut/domain/errors";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { Ok } from "../schemas.ts";
import {
  ClusterReply,
  type ClusterWire,
  DisputedParams,
  HostParams,
  JoinTokenBody,
  JoinTokenReply,
  TOKEN_LIFE,
} from "./cluster.schemas.ts";

const route = routesOf("platform");

/** Registers the routes of the cluster. On a host alone they say that there is none. */
export function clusterRoutes(app: Api, { clusterAdmin, hosts }: Pick<ApiDeps, "clusterAdmin" | "hosts">): void {
  app.get("/v1/cluster", route("Show the hosts of the cluster", { scope: "read" }, { reply: ClusterReply }), async () =>
    clusterWire(required(clusterAdmin).status(), hosts?.disputed() ?? []),
  );

  app.post(
    "/v1/cluster/tokens",
    route(
      "Create a token with which a host joins the cluster",
      { scope: "admin", audited: ["expires_in"] },
      { optionalBody: JoinTokenBody, created: JoinTokenReply },
    ),
    async ({ body: { expires_in: seconds = TOKEN_LIFE.default } }, reply) => {
      const { token, expiresAt } = await required(clusterAdmin).createToken(seconds * 1000);
      return reply.code(201).send({ token, expires_at: expiresAt });
    },
  );

  app.delete(
    "/v1/cluster/disputed/:machine_id",
    route(
      "Give up the disputed copy of a machine that this host keeps, because another host has the copy to continue with",
      { scope: "admin" },
      { params: DisputedParams, reply: Ok },
    ),
    async ({ params: { machine_id: id } }, reply) => {
      await required(hosts).drop(id, clientGone(reply));
      return { ok: true as const };
    },
  );

  app.delete(
    "/v1/cluster/hosts/:host",
    route(
      "Remove a host that is gone for good from the cluster",
      { scope: "admin" },
      { params: HostParams, reply: Ok },
    ),
    async ({ params: { host } }) => {
      await required(clusterAdmin).remove(host);
      return { ok: true as const };
    },
  );
}

function required<T>(part: T | undefined): T {
  if (part !== undefined) return part;
  throw new HibernautError(
    "not_found",
    "This platform is not in a cluster. `hibernaut cluster init` makes one, and `hibernaut cluster join` makes this host part of one.",
  );
}

function clusterWire(status: ClusterStatus, disputed: { machine: string; reason: string }[]): ClusterWire {
  return {
    id: status.id,
    region: status.region,
    host: status.host,
    lease: status.lease,
    directory: status.directory,
    directory_age_s: status.staleS,
    certificate_expires_at: status.certificateExpiresAt,
    disputed: disputed.map(({ machine, reason }) => ({ machine_id: machine, reason })),
    hosts: status.hosts.map(({ name, member, up, machines }) => ({
      name,
      state: up === undefined ? "away" : "up",
      peer: up?.peer ?? null,
      version: up?.version ?? null,
      machines,
      memory_mb: up?.memoryMb ?? null,
      draining: up?.draining ?? false,
      joined_at: member.joinedAt,
      started_at: up?.startedAt ?? null,
    })),
  };
}
