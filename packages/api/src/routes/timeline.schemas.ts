/** Shapes of `/v1/timeline` and `/v1/wakes`. */
import { BOOT_KINDS } from "@hibernaut/domain/machine";
import { SPAN_STATES } from "@hibernaut/domain/timeline";
import { type Static, Type } from "typebox";
import { closed, machineState, oneOf, time } from "../schemas.ts";

/** What a chart shows unless it says otherwise, in hours. */
export const USUAL_HOURS = 24;
/** A week: what is kept. */
const MAX_HOURS = 168;

/** `?hours=24&app=shop` */
export const TimelineQuery = Type.Object(
  {
    hours: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_HOURS,
        description: `The last hours, this many. Default: ${USUAL_HOURS}.`,
      }),
    ),
    app: Type.Optional(Type.String({ description: "Only machines of this app." })),
  },
  closed,
);

const SpanWire = Type.Object(
  { state: oneOf(SPAN_STATES), from: time, until: time },
  { ...closed, title: "TimelineSpan", description: "A stretch of time that a machine spent in one state." },
);

const WakeWire = Type.Object(
  {
    at: time,
    kind: oneOf(BOOT_KINDS),
    reason: Type.String({ description: "Why it was this kind: a stable word and, after a colon, details." }),
    duration_ms: Type.Integer({ minimum: 0 }),
  },
  { ...closed, title: "Wake", description: "A start that was completed." },
);

const MachineTimeline = Type.Object(
  {
    app_name: Type.String(),
    machine_id: Type.String(),
    name: Type.String(),
    state: machineState,
    spans: Type.Array(SpanWire, {
      description:
        "What the machine did, without a gap up to now. `warm` is asleep with its paused virtual machine in memory. Spans too short to be seen are shown together, as what took up most of their time.",
    }),
    wakes: Type.Array(WakeWire, { description: "The newest ones, oldest first." }),
    wakes_left_out: Type.Integer({ minimum: 0, description: "How many older ones there are." }),
  },
  { ...closed, title: "MachineTimeline", description: "What a machine did over time." },
);

export const TimelineReply = Type.Object(
  { from: time, until: time, machines: Type.Array(MachineTimeline) },
  { ...closed, title: "Timeline", description: "What machines did over time, those that are not destroyed." },
);

const Summary = Type.Object(
  { count: Type.Integer({ minimum: 1 }), p50_ms: Type.Integer({ minimum: 0 }), p99_ms: Type.Integer({ minimum: 0 }) },
  { ...closed, title: "WakeSummary", description: "How often machines woke, and how long that took." },
);

export const WakesReply = Type.Object(
  {
    from: time,
    until: time,
    hours: Type.Array(
      Type.Object(
        {
          from: time,
          kinds: Type.Object(
            { warm: Type.Optional(Summary), resume: Type.Optional(Summary), cold: Type.Optional(Summary) },
            { ...closed, description: "A kind without wakes is absent." },
          ),
        },
        { ...closed, title: "HourOfWakes" },
      ),
    ),
  },
  { ...closed, title: "Wakes", description: "How machines woke, hour by hour." },
);

export type TimelineWire = Static<typeof TimelineReply>;
export type WakesWire = Static<typeof WakesReply>;
