/** What one host of a cluster is enough for. A second one would do no harm. */
import type { Cluster, View } from "./cluster.ts";

/** Whether this host is the one that does it: the first by name of those that are up. */
export function isFirst({ view, host }: { view: Pick<View, "hosts">; host: string }): boolean {
  const up = view.hosts().filter((each) => each.up !== undefined);
  const [first] = up.map(({ name }) => name).toSorted();
  return first === host;
}

/** The same, while this host knows what the others know. */
export function decides(cluster: Pick<Cluster, "view" | "host" | "lease">): boolean {
  return cluster.lease.state === "live" && cluster.view.staleSince === undefined && isFirst(cluster);
}
