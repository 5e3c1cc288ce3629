/** What the public page of an app says about its machines on other hosts: what those have published. */
import { KEYS } from "@hibernaut/cluster/keys";
import type { JudgedMachine } from "@hibernaut/domain/app-status";
import type { MachineConfig } from "@hibernaut/domain/config";
import type { ApiCluster } from "../deps.ts";

/** Of what a host publishes of a machine for the proxies, what tells how it is. */
interface Published extends Pick<JudgedMachine["record"], "lastBoot" | "cordoned"> {
  crash: object | null;
  healthy: boolean;
}

/** Returns the app's machines on other hosts. */
export function machinesElsewhere({ shared, view }: Pick<ApiCluster, "shared" | "view">, app: string): JudgedMachine[] {
  return view
    .machines(app)
    .filter(({ host }) => host !== shared.host)
    .flatMap(({ id, host }) => {
      const published = view.state(id);
      const isAway = view.host(host)?.up === undefined;
      if (published === undefined && !isAway) return [];
      const route = published?.route as Partial<Published> | null | undefined;
      const agreed = view.value(`${KEYS.configs}${id}`) as { config: MachineConfig } | undefined;
      const { lastBoot = null, cordoned = false, crash = null, healthy = true } = route ?? {};
      const state = isAway ? "failed" : (published?.state ?? "failed");
      return [
        {
          record: { state, config: agreed?.config ?? {}, lastBoot, snapshot: null, cordoned, crash: crash && {} },
          health: { status: healthy ? "unknown" : "unhealthy" },
          isAway,
        },
      ];
    });
}
