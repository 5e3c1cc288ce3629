/** Shapes of the stream of events. */
import { Type } from "typebox";
import { POSITION_PATTERN } from "../cluster/events/positions.ts";
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
      Type.String({
        pattern: POSITION_PATTERN,
        description:
          "Begin after the event with this sequence number, or in a cluster with this `position`; 0 begins with the oldest that is kept. `Last-Event-ID` does the same, and goes first. Default: begin with what comes.",
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

/** An event. In a reply, it is the data of a server-sent event whose id is the sequence number, or in a cluster the position. */
export const StreamEventWire = Type.Object(
  {
    sequence: Type.Integer({ description: "Counts up; numbers may be missing. In a cluster, each host has its own." }),
    at: time,
    type: Type.String({ description: "What it happened to, and what happened." }),
    app_name: nullable(Type.String(), "Null for what belongs to no app."),
    machine_id: nullable(Type.String()),
    data: Type.Record(Type.String(), Type.Unknown(), { description: "What else is known, by type." }),
    host: Type.Optional(Type.String({ description: "Only in a cluster: the host on which it happened." })),
    position: Type.Optional(
      Type.String({ description: "Only in a cluster: with this as `since`, any host continues after the event." }),
    ),
  },
  { ...closed, title: "StreamEvent", description: "Something that changed on the platform." },
);
