/** `/v1/apps/{app_name}/machines/{machine_id}/activity`: why a machine is awake. */
import type { Api, ApiDeps } from "../deps.ts";
import { replies } from "../schemas.ts";
import { ActivityReply } from "./activity.schemas.ts";
import { MachineParams } from "./machines.schemas.ts";

/** Registers the route. */
export function activityRoute(app: Api, { machines, activity }: Pick<ApiDeps, "machines" | "activity">): void {
  app.get(
    "/v1/apps/:app_name/machines/:machine_id/activity",
    {
      config: { scope: "read" },
      schema: {
        tags: ["machines"],
        summary: "Show what a machine is used for, and why it does not sleep",
        params: MachineParams,
        response: replies(200, ActivityReply),
      },
    },
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
