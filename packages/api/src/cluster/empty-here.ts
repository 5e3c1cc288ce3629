/** Destroys what an app has on this host, for the app's deletion. */
import { isBeingDeleted } from "@hibernaut/cluster";
import { HibernautError } from "@hibernaut/domain/errors";
import type { ApiCluster, ApiDeps } from "../deps.ts";

interface EmptyDeps extends Pick<ApiDeps, "apps" | "volumes"> {
  cluster: Pick<ApiCluster, "shared" | "view">;
}

/**
 * Rejects with `unavailable` while this host does not know of the deletion, because volumes, which are in no directory,
 * could still be added, and with `aborted` when one was being made; otherwise like `Apps.empty`.
 */
export async function emptyHere(
  name: string,
  { force }: { force: boolean },
  { apps, volumes, cluster: { shared, view } }: EmptyDeps,
): Promise<void> {
  await shared.catchUp();
  apps.get(name);
  if (!isBeingDeleted(view, name))
    throw new HibernautError(
      "unavailable",
      `Host ${shared.host} has not heard yet that app ${name} is being deleted, so nothing was destroyed there. See \`hibernaut cluster status\`, and try again.`,
      { host: shared.host },
    );
  await apps.empty(name, { force });
  const left = volumes.list(name).map(({ id }) => id);
  if (left.length === 0) return;
  const message = `App ${name} got a new volume on host ${shared.host} while it was being deleted. Try again.`;
  throw new HibernautError("aborted", message, { volumes: left });
}
