/** Shapes of `GET .../machines/{machine_id}/wait`. */
import { Type } from "typebox";
import { closed, machineState, wordsOf } from "../schemas.ts";

/** `?state=suspended,failed&timeout=30` */
export const WaitQuery = Type.Object(
  {
    state: wordsOf(
      "`running` (or `started`), `stopped`, `suspended`, `destroyed`, `failed`, `created`, `restarting`, or `settled` for any resting state. `healthy`: running, listening on the ports of its services, and all checks pass; `unhealthy`: running, but requests cannot reach it or a check failed. `prewarmed`: no prewarm is in progress, however it ended. Default: `running`.",
    ),
    timeout: Type.Optional(Type.Integer({ minimum: 1, maximum: 300, description: "Seconds. Default: 60." })),
  },
  closed,
);

/** The state that the machine reached. */
export const WaitReply = Type.Object({ ok: Type.Literal(true), state: machineState }, closed);
