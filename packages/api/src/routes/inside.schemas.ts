/** Shapes of the routes for programs inside a machine. */
import { Type } from "typebox";
import { closed, nullable, time } from "../schemas.ts";

/** A lease that keeps a machine awake. */
export const KeepAwake = Type.Object(
  { until: time, reason: Type.String() },
  { ...closed, description: "The app asked not to be suspended or stopped for being idle." },
);

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

export const KeepAliveReply = Type.Object({ ok: Type.Literal(true), keep_awake: nullable(KeepAwake) }, closed);

export const WakeBody = Type.Object(
  {
    at: Type.Optional(Type.String({ description: "The time, RFC 3339, at most a year away." })),
    in: Type.Optional(
      Type.Union([Type.Integer(), Type.String()], {
        description: "The time from now instead: a number of seconds, or a text such as `1h30m`.",
      }),
    ),
  },
  closed,
);

export const WakeReply = Type.Object({ ok: Type.Literal(true), wake_at: time }, closed);

export const PreparedReply = Type.Object(
  {
    ok: Type.Literal(true),
    prewarm: Type.Boolean({ description: "Whether the machine was started for its snapshot, and sleeps now." }),
  },
  closed,
);

export const QuestionParams = Type.Object({ event_id: Type.String() }, closed);
