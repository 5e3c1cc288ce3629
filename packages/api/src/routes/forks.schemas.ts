/** Shapes of forks and templates. */
import { MachineConfig } from "@hibernaut/domain/config";
import { DEFAULT_TEMPLATE_TIMEOUT_S, FORKS_AT_ONCE, TEMPLATE_TIMEOUT_S, WARM_POOL } from "@hibernaut/domain/limits";
import { type Static, Type } from "typebox";
import { closed, imageReference, nullable, time } from "../schemas.ts";
import { AppParams } from "./apps.schemas.ts";
import { argument, environment } from "./exec.schemas.ts";

const Births = {
  count: Type.Optional(Type.Integer({ ...FORKS_AT_ONCE, description: "How many machines to make. Default: 1." })),
  name: Type.Optional(
    Type.String({
      description: "Of several machines, each gets it with a number: `name-1`. Default: generated names.",
    }),
  ),
  env: Type.Optional({
    ...environment,
    description: "For programs that start later, in addition to the machine's. Programs that run already keep theirs.",
  }),
  skip_launch: Type.Optional(
    Type.Boolean({ description: "Leave the machines asleep instead of starting them. Default: false." }),
  ),
  skip_service_registration: Type.Optional(
    Type.Boolean({
      description: "Make the machines cordoned: they get no requests until they are uncordoned. Default: false.",
    }),
  ),
};

export const ForkBody = Type.Object(Births, { ...closed, title: "ForkRequest" });

const warmPool = Type.Integer({
  ...WARM_POOL,
  description:
    "How many machines are kept asleep, ready to be taken when someone makes a machine from the template. Each takes what a sleeping machine takes, and counts in the quotas of the app. Default: 0.",
});

export const RestoreBody = Type.Object(
  {
    template: Type.String({ description: "A template of the app: its id, its name, or the beginning of its id." }),
    skip_launch: Type.Optional(Type.Boolean({ description: "Leave the machine asleep. Default: false." })),
  },
  { ...closed, title: "RestoreRequest" },
);

export const TemplateReply = Type.Object(
  {
    id: Type.String({ pattern: "^[0-9a-f]{14}$" }),
    app_name: Type.String(),
    name: Type.String(),
    image: imageReference,
    config: MachineConfig,
    machine_id: Type.String({ description: "The machine whose state it is. It may be gone." }),
    machines: Type.Array(Type.String(), {
      description: "Ids of the machines that were made from it. They do not need it any more.",
    }),
    pool: Type.Object(
      {
        size: warmPool,
        ready: Type.Integer({ description: "Machines that can be taken now." }),
        warm: Type.Integer({ description: "Those of them that are kept in memory, too." }),
        reason: nullable(Type.String(), "Why the pool is not full. Null while it is, or is being filled."),
      },
      { ...closed, title: "TemplatePool" },
    ),
    size_bytes: Type.Integer({ description: "Bytes that it takes on the disk of each host that has it." }),
    created_at: time,
    hosts: Type.Optional(
      Type.Array(Type.String(), {
        description:
          "In a cluster, the hosts that have it, sorted. Others get it when a machine is made from it there.",
      }),
    ),
  },
  {
    ...closed,
    title: "Template",
    description: "The memory and the disk of a machine at one moment, from which machines are made. It never changes.",
  },
);

export type TemplateWire = Static<typeof TemplateReply>;

export const TemplateList = Type.Array(TemplateReply);

const Command = Type.Array(argument, { minItems: 1, maxItems: 256 });

export const CreateTemplateBody = Type.Object(
  {
    from: Type.Union([Type.String(), MachineConfig], {
      description:
        "A running or suspended machine: its id, its name, or the beginning of its id. Or a configuration: a machine is made, and destroyed when the template is.",
    }),
    name: Type.Optional(Type.String({ description: "Unique within the app. Default: a generated name." })),
    warm_pool: Type.Optional(warmPool),
    prepare: Type.Optional({
      ...Command,
      description: "With a configuration: a command that runs in the machine once it is healthy.",
    }),
    ready: Type.Optional({
      ...Command,
      description: "With a configuration: a command that is run until it exits with 0.",
    }),
    timeout: Type.Optional(
      Type.Integer({
        ...TEMPLATE_TIMEOUT_S,
        description: `With a configuration: seconds from the start of the machine until it has to be ready. Default: ${DEFAULT_TEMPLATE_TIMEOUT_S}.`,
      }),
    ),
  },
  { ...closed, title: "CreateTemplateRequest" },
);

export const UpdateTemplateBody = Type.Object({ warm_pool: warmPool }, { ...closed, title: "UpdateTemplateRequest" });

export const TemplateParams = Type.Object(
  {
    ...AppParams.properties,
    template: Type.String({ description: "The template's id, its name, or the beginning of its id." }),
  },
  closed,
);
