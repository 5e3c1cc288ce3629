/** Makes and removes apps that come from backups: on this host alone, or in the whole cluster. */
import type { AppHome } from "@hibernaut/backup";
import type { SharedRecords } from "@hibernaut/cluster";
import type { Resources } from "@hibernaut/machines";

/** `shared` are the records of a cluster; undefined on a host alone. */
export function appHome({ apps, secrets }: Pick<Resources, "apps" | "secrets">, shared?: SharedRecords): AppHome {
  return {
    async create(app, network) {
      const place = network && { network: network.name, aliases: network.aliases, wakes: network.wakes };
      if (shared === undefined) apps.create(app, place);
      else await known(shared, (parts) => parts.apps.create(app, place));
    },
    async setSecrets(app, values) {
      if (shared === undefined) secrets.set(app, values);
      else await known(shared, (parts) => parts.secrets.set(app, values));
    },
    async destroy(app) {
      if (shared === undefined) await apps.delete(app, { force: true });
      // Its machines are on this host, which made them.
      else await shared.deleteApp(app, () => apps.empty(app, { force: true }));
    },
  };
}

/** Resolves once this host knows of the change, too. */
async function known(shared: SharedRecords, change: Parameters<SharedRecords["write"]>[0]): Promise<void> {
  await shared.write(change);
  await shared.catchUp();
}
