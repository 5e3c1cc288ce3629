/** Shapes of `/v1/apps/{app_name}/releases`. */
import { MachineConfig } from "@hibernaut/domain/config";
import { type Static, Type } from "typebox";
import { closed, imageReference, nullable, oneOf, time } from "../schemas.ts";
import { AppParams } from "./apps.schemas.ts";
import { LogLine } from "./logs.schemas.ts";

export const ReleaseReply = Type.Object(
  {
    version: Type.Integer({ description: "Counted from 1 in each app." }),
    status: oneOf(["pending", "complete", "failed", "abandoned"]),
    image: imageReference,
    pinned_image: Type.String({
      description:
        "The reference with its digest. Machines of this release use it, so that a tag cannot move under them.",
    }),
    description: Type.String(),
    created_at: time,
  },
  { ...closed, title: "Release", description: "A deploy of an image to an app, and how it ended." },
);

export const ReleaseList = Type.Object({ releases: Type.Array(ReleaseReply) }, closed);

export const ReleaseParams = Type.Object(
  { ...AppParams.properties, version: Type.String({ pattern: "^[1-9]\\d{0,8}$" }) },
  closed,
);

export const CreateReleaseBody = Type.Object(
  {
    image: Type.String({ minLength: 1, maxLength: 1024, description: "Reference of the image to deploy." }),
    description: Type.Optional(Type.String({ maxLength: 500 })),
  },
  { ...closed, title: "CreateReleaseRequest" },
);

/** Ends a release, or reports that it is still being deployed. */
export const UpdateReleaseBody = Type.Object(
  {
    status: oneOf(["pending", "complete", "failed"]),
    description: Type.Optional(Type.String({ maxLength: 500 })),
  },
  { ...closed, title: "UpdateReleaseRequest" },
);

/** How long a release command may take when the request does not say, in seconds: as on Fly. */
export const COMMAND_TIMEOUT_S = 300;
/** Longer migrations are better run by themselves. */
const MAX_COMMAND_TIMEOUT_S = 6 * 3600;

export const ReleaseCommandBody = Type.Object(
  {
    config: MachineConfig,
    timeout: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_COMMAND_TIMEOUT_S,
        description: `Seconds from the creation of the machine to the end of the command. Default: ${COMMAND_TIMEOUT_S}.`,
      }),
    ),
  },
  {
    ...closed,
    title: "ReleaseCommandRequest",
    description:
      "The configuration of the temporary machine; the command is what its `init` says. The machine gets the image of the release and RELEASE_COMMAND=1, and no services, checks, mounts, schedule or restarts.",
  },
);

const CommandEnd = Type.Object(
  {
    ok: Type.Boolean({ description: "Whether the command exited with code 0, in time." }),
    exit_code: nullable(Type.Integer(), "Null when it did not exit by itself."),
    reason: Type.String({ description: "How it ended, for people." }),
  },
  { ...closed, title: "ReleaseCommandEnd", description: "How the command of a release ended." },
);

/** One line of the reply. */
export const ReleaseCommandLine = Type.Union([LogLine, CommandEnd]);

export type CommandEndWire = Static<typeof CommandEnd>;

export type ReleaseWire = Static<typeof ReleaseReply>;
