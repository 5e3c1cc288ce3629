/** Shapes of the actions on a machine. */
import { Type } from "typebox";
import { closed, machineState } from "../schemas.ts";

/** A start. No body is the same as an empty one. */
export const StartBody = Type.Object(
  {
    reason: Type.Optional(
      Type.String({ maxLength: 200, description: "Why, for the machine's history; for example `exec`." }),
    ),
  },
  { ...closed, title: "StartRequest" },
);

/** A start that was accepted. */
export const StartReply = Type.Object({ ok: Type.Literal(true), previous_state: machineState }, closed);
