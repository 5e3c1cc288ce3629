/** `/v1/cluster`: the hosts that this one belongs to. */
import type { ClusterStatus } from "@hibernaut/cluster";
import { HibernautError } from "@hibernaut/domain/errors";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { NoQuery, Ok, replies } from "../schemas.ts";
import { allowNoBody } from "./actions.ts";
import {
  ClusterReply,
  type ClusterWire,
  DisputedParams,
  HostParams,
  JoinTokenBody,
  JoinTokenReply,
} from "./cluster.schemas.ts";

/** How long a join token is valid by default, in seconds. */
const TOKEN_LIFE_S = 3600;

/** Registers the routes of the cluster. On a host alone they say that there is none. */
export function clusterRoutes(app: Api, { clusterAdmin, hosts }: Pick<ApiDeps, "clusterAdmin" | "hosts">): void {
  const schema = { tags: ["platform"], querystring: NoQuery };

  app.get(
    "/v1/cluster",
    {
      config: { scope: "read" },
      schema: { ...schema, summary: "Show the hosts of the cluster", response: replies(200, ClusterReply) },
    },
    async () => clusterWire(required(clusterAdmin).status(), hosts?.disputed() ?? []),
  );

  app.post(
    "/v1/cluster/tokens",
    {
      config: { scope: "admin", audited: ["expires_in"] },
      preValidation: allowNoBody,
      schema: {
        ...schema,
        summary: "Create a token with which a host joins the cluster",
        body: JoinTokenBody,
        response: replies(201, JoinTokenReply),
      },
    },
    async ({ body: { expires_in: seconds = TOKEN_LIFE_S } }, reply) => {
      const { token, expiresAt } = await required(clusterAdmin).createToken(seconds * 1000);
      return reply.code(201).send({ token, expires_at: expiresAt });
    },
  );

  app.delete(
    "/v1/cluster/disputed/:machine_id",
    {
      config: { scope: "admin" },
      schema: {
        ...schema,
        summary:
          "Give up the disputed copy of a machine that this host keeps, because another host has the copy to continue with",
        params: DisputedParams,
        response: replies(200, Ok),
      },
    },
    async ({ params: { machine_id: id } }, reply) => {
      await required(hosts).drop(id, clientGone(reply));
      return { ok: true as const };
    },
  );

  app.delete(
    "/v1/cluster/hosts/:host",
    {
      config: { scope: "admin" },
      schema: {
        ...schema,
        summary: "Remove a host that is gone for good from the cluster",
        params: HostParams,
        response: replies(200, Ok),
      },
    },
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
