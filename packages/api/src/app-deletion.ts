/** The deletion of an app, on all hosts that have something of it. */
import type { FastifyRequest } from "fastify";
import type { ApiDeps } from "./deps.ts";

interface DeletedApp {
  name: string;
  force: boolean;
  /** When it was created. By default, whichever has the name now is meant. */
  createdAt?: string;
}

/**
 * Deletes an app; with `force`, also its machines and volumes. On another host than the one that the client talks to, only
 * destroys what that host has: the client's host removes the app when all hosts have emptied it.
 */
export async function deleteApp(
  request: FastifyRequest,
  { name, force, createdAt }: DeletedApp,
  { apps, volumes, cluster }: Pick<ApiDeps, "apps" | "volumes" | "cluster">,
): Promise<void> {
  if (cluster === undefined) return apps.delete(name, { force });
  const { emptyEverywhere, emptyHere } = await import("./cluster/empty.ts");
  const here = () => emptyHere(name, { force }, { apps, volumes, cluster });
  if (request.peer !== null) await here();
  else await cluster.shared.deleteApp(name, () => emptyEverywhere(request, cluster, here), createdAt);
}
