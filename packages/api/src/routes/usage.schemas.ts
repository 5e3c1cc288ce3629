/** Shapes of usage. */
import { GROUPINGS, MAX_DAYS } from "@hibernaut/metering";
import { Type } from "typebox";
import { bytes, closed, nullable, oneOf, time } from "../schemas.ts";

const quantity = (description: string) => Type.Number({ minimum: 0, description });
const money = (description: string) => Type.Number({ description });

const moment = (description: string) =>
  Type.Optional(
    Type.String({ description: `${description} A time (RFC 3339), a date, or an age such as 12h or 30d.` }),
  );

const range = {
  from: moment(`Usage from the day (UTC) of this moment on, up to ${MAX_DAYS} days. Default: 30 days before \`to\`.`),
  to: moment("Usage up to the end of the day (UTC) before this moment, or that it is in. Default: now."),
};

/** `?from=2026-01-01&to=2026-02-01` */
export const MachineUsageQuery = Type.Object(range, closed);

/** The same, with `&group_by=machine&app=shop`. */
export const UsageQuery = Type.Object(
  {
    ...range,
    group_by: Type.Optional(oneOf(GROUPINGS)),
    app: Type.Optional(Type.String({ description: "Only this app, which may have been destroyed. Default: all." })),
  },
  closed,
);

const Cost = Type.Object(
  {
    cpu: money("CPU of running machines."),
    memory: money("Memory of running machines."),
    storage: money("Writable layers and volumes."),
    total: money("All of these."),
    if_always_running: money("What the total would be if the machines had run as long as they existed."),
    saved_by_sleeping: money("The difference between the two."),
  },
  { ...closed, title: "Cost", description: "Cost in the currency of the report, not rounded." },
);

const Usage = Type.Object(
  {
    app_name: nullable(Type.String(), "Null for a row about all apps."),
    machine_id: nullable(
      Type.String(),
      "Only with `group_by=machine`. Null for the volumes of an app that no machine has.",
    ),
    machine_name: nullable(Type.String(), "Like `machine_id`."),
    day: nullable(Type.String({ format: "date" }), "Only with `group_by=day`. In UTC."),
    running_seconds: quantity("How long machines ran."),
    suspended_seconds: quantity("How long machines were suspended."),
    stopped_seconds: quantity("How long machines were stopped, or in another state without a guest."),
    cpu_seconds: quantity("The time of running machines, multiplied by their CPUs."),
    memory_gb_seconds: quantity("The time of running machines, multiplied by their memory in GB of 1024 MB."),
    layer_gb_seconds: quantity("Disk space of writable layers in GB, multiplied by time."),
    volume_gb_seconds: quantity("Size of volumes in GB, multiplied by time."),
    snapshot_gb_seconds: quantity("Disk space of machines' snapshots in GB, multiplied by time. Not billed."),
    wakes: Type.Object(
      { resume: Type.Integer({ minimum: 0 }), cold: Type.Integer({ minimum: 0 }) },
      { ...closed, description: "Starts that a request at the proxy asked for, by kind." },
    ),
    proxied_bytes: Type.Object({ in: bytes, out: bytes }, { ...closed, description: "As seen by the app." }),
    cost: nullable(Cost, "Null without a price file."),
  },
  { ...closed, title: "Usage", description: "What was used, by one app, machine or day, or in all." },
);

export const UsageReportReply = Type.Object(
  {
    from: time,
    to: time,
    group_by: oneOf(GROUPINGS),
    currency: nullable(Type.String(), "ISO 4217; null without a price file."),
    usage: Type.Array(Usage),
    total: Usage,
  },
  { ...closed, title: "UsageReport", description: "Usage of whole days, of which today is counted up to now." },
);
