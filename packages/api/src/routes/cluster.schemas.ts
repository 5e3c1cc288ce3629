/** Shapes of `/v1/cluster`. */
import { type Static, Type } from "typebox";
import { closed, nullable, oneOf, time } from "../schemas.ts";

/** How long a join token is valid unless something else is asked for, and the limits, in seconds. */
export const TOKEN_LIFE = { default: 3600, minimum: 60, maximum: 7 * 86_400 } as const;

const ClusterHost = Type.Object(
  {
    name: Type.String(),
    state: oneOf(["up", "away"]),
    peer: nullable(Type.String(), "Where other hosts reach it. Null while it is away."),
    version: nullable(Type.String(), "Its version of Hibernaut. Null while it is away."),
    machines: Type.Integer({ description: "How many machines it owns." }),
    memory_mb: nullable(
      Type.Object({ total: Type.Integer(), free: Type.Integer() }, closed),
      "Its memory in MB, and how much of it programs can still get. Null while it is away.",
    ),
    draining: Type.Boolean({ description: "Whether it takes no new machines." }),
    joined_at: time,
    started_at: nullable(time, "When its platform was started. Null while it is away."),
  },
  { ...closed, title: "ClusterHost", description: "A host of the cluster." },
);

const Disputed = Type.Object(
  { machine_id: Type.String(), reason: Type.String({ description: "Why, and what to do." }) },
  {
    ...closed,
    title: "DisputedMachine",
    description: "A machine that is stored on the host that answers, and that the directory does not give to it.",
  },
);

export const ClusterReply = Type.Object(
  {
    id: Type.String(),
    region: Type.String(),
    host: Type.String({ description: "The host that answers." }),
    lease: oneOf(["live", "grace", "lost"]),
    directory: Type.String({ description: "Where the hosts agree." }),
    directory_age_s: Type.Integer({
      description: "Seconds since this host last heard of the directory; 0 while it is connected.",
    }),
    certificate_expires_at: time,
    hosts: Type.Array(ClusterHost),
    disputed: Type.Array(Disputed),
  },
  { ...closed, title: "Cluster", description: "The cluster that this host belongs to." },
);

export type ClusterWire = Static<typeof ClusterReply>;

export const JoinTokenBody = Type.Object(
  {
    expires_in: Type.Optional(
      Type.Integer({ ...TOKEN_LIFE, description: "For how many seconds a host can join with it. Default: 3600." }),
    ),
  },
  { ...closed, title: "JoinTokenRequest" },
);

export const JoinTokenReply = Type.Object(
  { token: Type.String(), expires_at: time },
  { ...closed, title: "JoinToken", description: "A token with which one host can join the cluster." },
);

export const HostParams = Type.Object({ host: Type.String({ minLength: 1, maxLength: 80 }) }, closed);

export const DisputedParams = Type.Object(
  { machine_id: Type.String({ pattern: "^[0-9a-f]{14}$", description: "The machine's whole id." }) },
  closed,
);
