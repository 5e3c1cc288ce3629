/** The targets of backups, which the store does not have. */
import type { BackupTarget } from "@hibernaut/client/browser";
import { type Loaded, useChanges, useLoaded, useServices } from "./context.ts";
import { useFresh } from "./fresh.ts";
import { isUnlimited } from "./rights.ts";
import { TOPIC } from "./store.ts";

/** Reads the targets, and again whenever something has ended at one of them. There are none for a token of some apps. */
export function useTargets(): Loaded<BackupTarget[]> {
  const { api, session } = useServices();
  const changes = useChanges(TOPIC.backups);
  const loaded = useLoaded(
    async (signal) => (isUnlimited(session) ? await api.listBackupTargets({ signal }) : []),
    [changes],
  );
  useFresh(loaded.reload);
  return loaded;
}
