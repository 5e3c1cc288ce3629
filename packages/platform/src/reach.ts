/** What machines reach, and what reaches them: their network, and what keeps them to their rules for names. */
import { groupOf } from "@hibernaut/domain/app-network";
import type { Resources } from "@hibernaut/machines";
import { startNetwork } from "@hibernaut/network/start";
import { openAuthority } from "@hibernaut/proxy/outward";
import { openNames } from "./egress.ts";
import type { Membership } from "./member.ts";

export type Reach = Awaited<ReturnType<typeof openReach>>;

/** Opens it. With `dropSnapshots`, sleeping machines may lose the addresses that they had. */
export async function openReach(
  member: Membership,
  { alive, dropSnapshots }: { alive: ReadonlySet<string>; dropSnapshots: boolean },
) {
  const { settings, log, open, store, vault, cluster } = member;
  /** Where refused connections are told, once there are machines. */
  const histories: { machines?: Pick<Resources["machines"], "wasRefused"> } = {};
  const network = await startNetwork(settings, {
    ...{ machines: store.machines.list(), alive, dropSnapshots, log },
    groupOf: (app) => groupOf(app, store.apps.get(app)?.network),
    controlPlane: cluster?.controlPlane,
    onRefused(list) {
      for (const { machineId, address: destination, ...what } of list)
        histories.machines?.wasRefused(machineId, { destination, ...what });
    },
  });
  open.defer(() => network.close());
  const authority = openAuthority(settings.dataDir);
  const names = await openNames({
    ...{ gateway: network.gateway, names: network.names, store, settings, authority, vault, log },
    onRefused: (id, refused) => histories.machines?.wasRefused(id, refused),
  });
  open.defer(() => names.close());
  return { ...member, histories, network, authority };
}
