/** Shapes of what makes a machine a sandbox. */
import { DEFAULT_SANDBOX_TIMEOUT_S, SANDBOX_TIMEOUT_S } from "@hibernaut/domain/limits";
import { SANDBOX_ENDS } from "@hibernaut/domain/sandbox";
import { Type } from "typebox";
import { closed, oneOf, time } from "../schemas.ts";

/** Bounds what one request may send; all of them together have a limit of their own. */
const MOST_LABEL_CHARACTERS = 4096;

const onTimeout = oneOf(SANDBOX_ENDS);
const metadata = Type.Record(
  Type.String({ pattern: "^[^\\u0000]{1,256}$" }),
  Type.String({ maxLength: MOST_LABEL_CHARACTERS, pattern: "^[^\\u0000]*$" }),
  closed,
);
const timeout = Type.Integer(SANDBOX_TIMEOUT_S);

/** A sandbox on the wire. What opens it is not in it. */
export const SandboxReply = Type.Object(
  {
    template: Type.String({ description: "The template, as it was asked for." }),
    metadata: Type.Record(Type.String(), Type.String(), { description: "Labels of the program that made it." }),
    started_at: time,
    ends_at: { ...time, description: "When its time is over, if it runs by then." },
    timeout_s: Type.Integer({ minimum: 0, description: "Seconds that a wake gives it again." }),
    on_timeout: { ...onTimeout, description: "What happens then: it is destroyed, or suspended and kept." },
    auto_resume: Type.Boolean({ description: "Whether a request to its ports wakes it." }),
  },
  { ...closed, title: "Sandbox", description: "What makes a machine a sandbox." },
);

/** A new sandbox. */
export const SandboxBody = Type.Object(
  {
    timeout_s: Type.Optional({
      ...timeout,
      description: `Seconds that it lives from now. Default: ${DEFAULT_SANDBOX_TIMEOUT_S}.`,
    }),
    on_timeout: Type.Optional({ ...onTimeout, description: "What happens then. Default: kill." }),
    auto_resume: Type.Optional(
      Type.Boolean({ description: "With `pause`: whether a request to its ports wakes it. Default: false." }),
    ),
    metadata: Type.Optional({ ...metadata, description: "Labels, at most 16 KiB in all." }),
    mounts: Type.Optional(
      Type.Array(
        Type.Object(
          {
            volume: Type.String({ minLength: 1, maxLength: 64, description: "A volume that is there, by name or id." }),
            path: Type.String({ minLength: 1, maxLength: 4095 }),
          },
          closed,
        ),
        {
          maxItems: 8,
          description: "Volumes. With some, it begins with the files of the template, and without its memory.",
        },
      ),
    ),
  },
  { ...closed, title: "CreateSandboxRequest" },
);
