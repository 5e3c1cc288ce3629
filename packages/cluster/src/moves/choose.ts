/** Chooses the hosts to which a machine of this host can move: those that could also resume its memory. */
import { guestSize } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import type { HypervisorIdentity } from "@hibernaut/hypervisor";
import type { Resources } from "@hibernaut/machines";
import type { Cluster } from "../cluster.ts";
import type { HostRecord } from "../keys.ts";
import { byRoom, type Homeless, refusals } from "../place.ts";

interface ChooseContext {
  cluster: Pick<Cluster, "host" | "view">;
  departures: Resources["departures"];
}

interface ChooseOptions {
  cold: boolean;
  /** What other machines were given, in MB by host. */
  promised?: ReadonlyMap<string, number>;
}

/**
 * Resolves with the other hosts that may take the machine, best first; never empty. Rejects with `failed_precondition` when
 * there is none, or when the machine cannot be moved as it is.
 */
export async function choose(
  id: string,
  { cold, promised }: ChooseOptions,
  { cluster, departures }: ChooseContext,
): Promise<string[]> {
  const papers = await departures.papers(id, { cold });
  const { memoryMb } = guestSize(papers.record.config);
  const homeless: Homeless = {
    memoryMb,
    refusal(host) {
      const identity = identityOf(host);
      return identity && departures.refusalOn(papers, identity);
    },
  };
  const others = cluster.view.hosts().filter(({ name }) => name !== cluster.host);
  const found = byRoom(homeless, others, promised);
  if (found.length > 0) return found;
  const refused = [...refusals(homeless, others)].map(([host, reason]) => `${host}: ${reason}`);
  if (refused.length === 0) {
    const message = "No other host of the cluster is up that takes machines. See `hibernaut cluster status`.";
    throw new HibernautError("failed_precondition", message, { machine_id: id });
  }
  const message = `Machine ${id} cannot resume on any other host: ${refused.join("; ")}. Add --cold to move it without its memory: it keeps its files, and starts from scratch there.`;
  throw new HibernautError("failed_precondition", message, { machine_id: id });
}

/** What a host has published of its hypervisor: every field is text. Undefined when that says nothing. */
export function identityOf({ hypervisor: text }: Pick<HostRecord, "hypervisor">): HypervisorIdentity | undefined {
  if (text?.version === undefined) return undefined;
  const { cpu_features: features, ...plain } = text;
  return {
    ...(plain as unknown as HypervisorIdentity),
    ...(features !== undefined && { cpu_features: features.split(",").filter((each) => each !== "") }),
  };
}
