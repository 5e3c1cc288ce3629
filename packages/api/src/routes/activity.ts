/** `/v1/apps/{app_name}/machines/{machine_id}/activity`: why a machine is awake. */
import { AWAKE_REASONS } from "@hibernaut/domain/awake";
import { Type } from "typebox";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { closed, machineState, nullable, oneOf } from "../schemas.ts";
import { MachineParams } from "./machines.schemas.ts";

const route = routesOf("machines");

const count = (description: string) => Type.Integer({ minimum: 0, description });

const Awake = Type.Object(
  {
    reason: oneOf(AWAKE_REASONS),
    message: Type.String({ description: "The reason as a sentence." }),
    sleeps_in_ms: nullable(
      Type.Integer({ minimum: 0 }),
      "In how many milliseconds it sleeps if nobody uses it. Null if that does not depend on time alone.",
    ),
    open_requests: count("Requests that are open at the proxies, or connections if the service counts those."),
    running_commands: count("Commands that run in the machine."),
    idle_ms: count("For how many milliseconds no request has been open."),
  },
  closed,
);

const Process = Type.Object(
  {
    cpu_ms: count("CPU time since its start, in milliseconds: the guest's, and its own."),
    resident_bytes: count("Memory of it that is in the host's RAM."),
  },
  closed,
);

const ActivityReply = Type.Object(
  {
    state: machineState,
    awake: nullable(Awake, "Why it does not sleep. Null unless it is running."),
    process: nullable(
      Process,
      "What its QEMU process takes of the host, also that of a suspended machine that is kept warm. Null without one.",
    ),
  },
  { ...closed, title: "Activity", description: "What a machine is used for at the moment, and why it does not sleep." },
);

/** Registers the route. */
export function activityRoute(app: Api, { machines, activity }: Pick<ApiDeps, "machines" | "activity">): void {
  app.get(
    "/v1/apps/:app_name/machines/:machine_id/activity",
    route(
      "Show what a machine is used for, and why it does not sleep",
      { scope: "read" },
      { params: MachineParams, reply: ActivityReply },
    ),
    async ({ params }) => {
      const { record } = machines.get(params.app_name, params.machine_id);
      const now = activity?.(record.id);
      const usage = await machines.usage(params.app_name, record.id);
      const process =
        usage === undefined ? null : { cpu_ms: Math.round(usage.cpuMs), resident_bytes: usage.residentBytes };
      if (now === undefined) return { state: record.state, awake: null, process };
      const { reason, message, sleepsInMs, open, commands, idleMs } = now;
      const awake = { reason, message, sleeps_in_ms: sleepsInMs === null ? null : Math.ceil(sleepsInMs) };
      return {
        state: record.state,
        awake: { ...awake, open_requests: open, running_commands: commands, idle_ms: idleMs },
        process,
      };
    },
  );
}
