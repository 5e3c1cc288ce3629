/** Everything about backups: to a file, to targets by a schedule, and single apps out of them. */
import { AppRestores, Backups, BackupTargets, startScheduler } from "@hibernaut/backup";
import type { SharedRecords } from "@hibernaut/cluster";
import type { ImageStore } from "@hibernaut/images";
import { background } from "@hibernaut/lib/background";
import type { Resources } from "@hibernaut/machines";
import { openSecrets, openVault } from "@hibernaut/secrets/open";
import type { Settings } from "@hibernaut/settings";
import type { Store } from "@hibernaut/store";
import { openStore } from "@hibernaut/store/open";
import type { VolumeCopies } from "@hibernaut/volumes";
import type { Logger } from "pino";
import { appHome } from "./app-home.ts";
import { VERSION } from "./version.ts";

interface BackupParts {
  settings: Settings;
  store: Store;
  /** The file with the key of the secrets. */
  keyFile: string;
  resources: Resources;
  volumes: VolumeCopies;
  images: ImageStore;
  /** The records of a cluster. Undefined on a host alone. */
  shared: SharedRecords | undefined;
  log: Logger;
}

/** Opens what makes and restores backups. Nothing happens before `recover` and `start`. */
export function openBackups({ settings, store, keyFile, resources, volumes, images, shared, log }: BackupParts) {
  const { dataDir } = settings;
  const sealed = { store: store.secrets, keyFile };
  const { machineCopies } = resources;
  const backups: Backups = new Backups({
    refuse: () => backupTargets.refuseCopies(),
    ...{ dataDir, store, openStore, machineCopies, commands: resources, volumes, log },
  });
  const backupTargets: BackupTargets = new BackupTargets({
    ...{ dataDir, backups, vault: openVault(sealed), outbox: store.outbox, version: VERSION, settings, log },
  });
  const appRestores = new AppRestores({
    ...{ dataDir, targets: backupTargets, resources, images, openStore, openSecrets, log },
    home: appHome(resources, shared),
    secrets: openSecrets(sealed),
  });
  return {
    backups,
    backupTargets,
    appRestores,
    /** Tidies up after a platform that was killed. Call it before machines are recovered. */
    async recover(): Promise<void> {
      await backups.recover();
      await backupTargets.recover();
    },
    /** Begins with what is due. Call it once machines are recovered. Returns a function that ends that. */
    start(): () => Promise<void> {
      background(appRestores.recover(), "removing what a restore left");
      return startScheduler({
        targets: backupTargets,
        drill: async (target) => {
          // It would only find that.
          if (!resources.drain.active) await appRestores.drill(target, {});
        },
        log,
      });
    },
    async close(): Promise<void> {
      await backupTargets.close();
      await backups.close();
    },
  };
}
