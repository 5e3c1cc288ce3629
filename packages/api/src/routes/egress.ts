/** `/v1/apps/{app}/machines/{id}/egress`: where a machine may connect to, changed while it runs. */
import { EgressConfig } from "@hibernaut/domain/config";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { NoBody, Ok } from "../schemas.ts";
import { MachineParams } from "./machines.schemas.ts";

const route = routesOf("machines");
const PATH = "/v1/apps/:app_name/machines/:machine_id/egress";

/** Registers the routes of what a machine connects to. Its configuration shows the rules. */
export function egressRoutes(app: Api, { machines }: Pick<ApiDeps, "machines">): void {
  app.put(
    PATH,
    route(
      "Change where a machine may connect to, at once",
      { scope: "deploy" },
      { params: MachineParams, body: EgressConfig, reply: Ok },
    ),
    async ({ params, body }) => {
      await machines.setEgress(params.app_name, params.machine_id, body);
      return { ok: true as const };
    },
  );

  app.delete(
    PATH,
    route(
      "Let a machine connect wherever the network lets machines",
      { scope: "deploy" },
      { params: MachineParams, optionalBody: NoBody, reply: Ok },
    ),
    async ({ params }) => {
      await machines.setEgress(params.app_name, params.machine_id, null);
      return { ok: true as const };
    },
  );
}
