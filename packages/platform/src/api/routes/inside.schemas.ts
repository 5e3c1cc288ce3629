/** Shapes of the routes for programs inside a machine. */
import { Type } from "typebox";
import { closed, nullable, time } from "../schemas.ts";

/** A lease that keeps a machine awake. */
export const KeepAwake = Type.Object(
  { until: time, reason: Type.String() },
  { ...closed, description: "The app asked not to be suspended or stopped for being idle." },
);

/** Asks for a lease. */
export const KeepAliveBody = Type.Object(
  {
    ttl: Type.Integer({
      minimum: 1,
      description: "Seconds from now. The setting HIBERNAUT_KEEPALIVE_MAX_TTL is the upper limit.",
    }),
    reason: Type.Optional(Type.String({ maxLength: 200 })),
  },
  closed,
);

/** The machine's lease. */
export const KeepAliveReply = Type.Object({ ok: Type.Literal(true), keep_awake: nullable(KeepAwake) }, closed);

/** The part of the path that names a suspend that waits for the app. */
export const QuestionParams = Type.Object({ event_id: Type.String() }, closed);
