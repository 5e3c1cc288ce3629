/** Shapes of the stream of events. */
import { Type } from "typebox";
import { closed, nullable, time, wordsOf } from "../schemas.ts";

/** As many past events as one request may begin with. */
const MAX_TAIL = 1_000;

/** `?app=shop&type=machine.suspended&since=1042` */
export const StreamQuery = Type.Object(
  {
    app: Type.Optional(Type.String({ description: "Only events of this app." })),
    machine: Type.Optional(
      Type.String({
        description: "Only events of this machine, with `app`: its id, name, or the beginning of its id.",
      }),
    ),
    type: wordsOf(
      "Only events of these types, such as `machine.suspended`, or groups of types, such as `machine`. Default: all.",
    ),
    since: Type.Optional(
      Type.Integer({
        minimum: 0,
        description:
          "Begin after the event with this sequence number; 0 begins with the oldest that is kept. `Last-Event-ID` does the same, and goes first. Default: begin with what comes.",
      }),
    ),
    tail: Type.Optional(
      Type.Integer({ minimum: 0, maximum: MAX_TAIL, description: "Begin with the last events, this many." }),
    ),
    follow: Type.Optional(
      Type.Union([Type.Literal("1"), Type.Literal("true"), Type.Literal("0"), Type.Literal("false")], {
        description: "With 0, the reply ends after the newest event. Default: 1.",
      }),
    ),
  },
  closed,
);

/** An event. In a reply, it is the data of a server-sent event whose id is the sequence number. */
export const StreamEventWire = Type.Object(
  {
    sequence: Type.Integer({ description: "Counts up; numbers may be missing." }),
    at: time,
    type: Type.String({ description: "What it happened to, and what happened." }),
    app_name: nullable(Type.String(), "Null for what belongs to no app."),
    machine_id: nullable(Type.String()),
    data: Type.Record(Type.String(), Type.Unknown(), { description: "What else is known, by type." }),
  },
  { ...closed, title: "StreamEvent", description: "Something that changed on the platform." },
);
