/** Shapes of `/v1/health` and `/v1/platform`. */
import { DRAIN_TIMEOUT_S, MAX_DRAIN_TIMEOUT_S } from "@hibernaut/domain/drain";
import { type Static, Type } from "typebox";
import { closed, nullable, oneOf, time } from "../schemas.ts";

const Region = Type.Object(
  {
    code: Type.String(),
    name: Type.String(),
    hosts: Type.Optional(
      Type.Array(Type.String(), { description: "The hosts of the cluster, by name, whether they are up or not." }),
    ),
  },
  { ...closed, title: "Region", description: "A place where machines run." },
);

/** The platform's regions, in Fly's shape. */
export const Regions = Type.Object({ regions: Type.Array(Region), nearest: Type.String() }, closed);

const DrainedMachine = Type.Object(
  {
    machine_id: Type.String(),
    app_name: Type.String(),
    name: Type.String(),
    result: oneOf(["waiting", "suspending", "suspended", "left"]),
    reason: nullable(
      Type.String(),
      "Why it is `left`: it keeps running, and loses its memory when the host goes down.",
    ),
  },
  { ...closed, title: "DrainedMachine", description: "How far a drain has come with a machine." },
);

export const DrainReply = Type.Object(
  {
    state: oneOf(["none", "draining", "drained"]),
    suspend: Type.Boolean({ description: "Whether machines are suspended." }),
    started_at: nullable(time),
    deadline: nullable(time, "When machines that are not asleep are left as they are."),
    completed_at: nullable(time, "Since when nothing is left to do. Null until then, and always without `suspend`."),
    machines: Type.Array(DrainedMachine, { description: "The machines that are suspended, or left." }),
  },
  {
    ...closed,
    title: "Drain",
    description: "While there is a drain, the platform neither starts nor creates machines.",
  },
);

export const DrainBody = Type.Object(
  {
    suspend: Type.Optional(
      Type.Boolean({ description: "Suspend all machines that can be suspended. Default: false." }),
    ),
    timeout: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_DRAIN_TIMEOUT_S,
        description: `Seconds that this may take, with \`suspend\`. Default: ${DRAIN_TIMEOUT_S}.`,
      }),
    ),
  },
  { ...closed, title: "DrainRequest" },
);

export type DrainWire = Static<typeof DrainReply>;

export const Health = Type.Object(
  {
    status: oneOf(["ok", "draining"]),
    version: Type.String({ description: "Version of Hibernaut." }),
    region: Type.String(),
    hypervisor: Type.String(),
    hypervisor_version: Type.String(),
    accelerator: Type.String({ description: "`kvm`, or `tcg` for software emulation." }),
    accelerator_reason: Type.String({ description: "Why the platform uses this accelerator." }),
    proxy_url: nullable(Type.String(), "Where the proxy listens. Null when proxies run as processes of their own."),
    guest_bundle: Type.String({ description: "Version of the guest bundle that new machines boot from." }),
    cluster: Type.Optional(
      Type.Object(
        {
          host: Type.String({ description: "The name of this host." }),
          lease: oneOf(["live", "grace", "lost"]),
          directory_age_s: Type.Integer({
            description: "Seconds since this host last heard of etcd; 0 while it is connected.",
          }),
          disputed_machines: Type.Optional(
            Type.Integer({
              description:
                "How many machines are stored here and do not start, because etcd gives them to nobody or to another host; `GET /v1/cluster` says why. Absent without any.",
            }),
          ),
        },
        {
          ...closed,
          description:
            "This host's place in its cluster. Absent on a host alone. Unless the lease is `live`, machines may not start here.",
        },
      ),
    ),
    network: Type.Object(
      {
        mode: Type.String({ description: "`bridge`, or `user` for QEMU's user-mode network." }),
        reason: Type.String({ description: "Why the platform uses this mode." }),
      },
      { ...closed, description: "How machines are connected." },
    ),
  },
  {
    ...closed,
    title: "Health",
    description:
      "What the platform is. Only a platform that works answers with it. One that is `draining` neither starts nor creates machines.",
  },
);
