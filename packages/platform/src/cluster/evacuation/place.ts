/** Which host gets a machine whose host was lost. Pure. */
import type { ClusterHost } from "../cluster.ts";

/** A machine that needs a host. */
export interface Homeless {
  memoryMb: number;
}

/**
 * Returns the host with the most room, or undefined when none is up that takes machines. `promised` is what machines before
 * this one were given, in MB by host, which the hosts have not published yet.
 */
export function roomiest(
  { memoryMb }: Homeless,
  hosts: readonly ClusterHost[],
  promised: ReadonlyMap<string, number>,
): string | undefined {
  const room = ({ name, up }: ClusterHost) => (up?.memoryMb.free ?? 0) - (promised.get(name) ?? 0);
  const fitting = hosts.filter(({ up }) => up !== undefined && !up.draining);
  // A machine that sleeps needs no room yet, so a full host is better than none.
  const roomy = fitting.filter((host) => room(host) >= memoryMb);
  const [first] = (roomy.length > 0 ? roomy : fitting).toSorted(
    (one, other) => room(other) - room(one) || (one.name < other.name ? -1 : 1),
  );
  return first?.name;
}
