/** The requests and replies of moves, evacuations and drains of hosts. */
import { NAME_PATTERN } from "@hibernaut/domain/naming";
import { Type } from "typebox";
import { bytes, closed, ErrorBody, oneOf } from "../schemas.ts";

const host = Type.String({ pattern: NAME_PATTERN, description: "The name of a host of the cluster." });

const withVolumes = Type.Optional(
  Type.Boolean({
    description:
      "Machines take their volumes along, with the snapshots of those. Default: false; a machine with a volume is not moved.",
  }),
);

export const MoveBody = Type.Object(
  {
    host: Type.Optional(
      Type.String({ pattern: NAME_PATTERN, description: "The host to move to. Default: the one with the most room." }),
    ),
    cold: Type.Optional(
      Type.Boolean({
        description:
          "Move the machine without its memory: it is stopped, keeps its files, and starts from scratch there. Default: false.",
      }),
    ),
    with_volumes: withVolumes,
  },
  closed,
);

export const HostDrainBody = Type.Object({ with_volumes: withVolumes }, closed);

const moving = {
  step: oneOf(["check", "precopy", "suspend", "copy", "commit", "done"]),
  bytes,
  total_bytes: Type.Integer({
    minimum: 0,
    description:
      "Bytes, of what is read in this step: the memory, and then the files of the machine and of volumes that move with it. An estimate.",
  }),
};

const MoveProgress = Type.Object(
  { ...moving, host },
  { ...closed, title: "MoveProgress", description: "How far a move is. `done` comes last." },
);

/** One line of the reply to a move. The last line has the step `done`, or `error`. */
export const MoveEvent = Type.Union([MoveProgress, ErrorBody]);

export const HostParams = Type.Object({ host }, closed);

const machine = {
  machine_id: Type.String(),
  app_name: Type.String(),
  name: Type.String({ description: "The machine's name." }),
};

export const EvacuateBody = Type.Object(
  {
    dead: Type.Literal(true, {
      description:
        "Required: you know that the host's machines do not run any more, and what they had there is given up.",
    }),
  },
  closed,
);

export const EvacuateReply = Type.Object(
  {
    machines: Type.Array(
      Type.Object(
        {
          ...machine,
          host: Type.Optional(Type.String({ description: "Its new host. Absent for a machine that was left behind." })),
          reason: Type.Optional(Type.String({ description: "Why it was left behind." })),
        },
        closed,
      ),
    ),
  },
  { ...closed, title: "Evacuation", description: "What became of the machines of a lost host." },
);

const HostDrainProgress = Type.Object(
  { ...machine, host, ...moving },
  { ...closed, title: "HostDrainProgress", description: "How far the move of one machine is." },
);

const DrainedHost = Type.Object(
  {
    done: Type.Literal(true),
    moved: Type.Integer({ minimum: 0, description: "How many machines moved." }),
    stayed: Type.Array(Type.Object({ ...machine, reason: Type.String() }, closed)),
  },
  { ...closed, title: "DrainedHost", description: "A host whose machines have moved." },
);

/** One line of the reply to a drain of a host. The last line has `done` or `error`. */
export const HostDrainEvent = Type.Union([HostDrainProgress, DrainedHost, ErrorBody]);
