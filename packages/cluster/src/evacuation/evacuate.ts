/** Gives the machines of a lost host to other hosts, which start them from scratch. */
import { guestSize } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineState } from "@hibernaut/domain/machine";
import type { Cluster } from "../cluster.ts";
import { type ConfigRecord, KEYS, nameOf, type OwnerRecord } from "../keys.ts";
import { ownerOf } from "../ownership/claims.ts";
import { byRoom } from "../place.ts";
import { deletion, put, read } from "../stored.ts";

/** What became of one machine. */
export interface Evacuation {
  machine: string;
  app: string;
  name: string;
  /** Its new host. Undefined when it was left behind. */
  to?: string;
  /** Why it was left behind. */
  reason?: string;
}

interface EvacuateOptions {
  /** Only these machines. By default, all. */
  wanted?(config: ConfigRecord, id: string): boolean;
}

/** States in which a machine has, or is meant to have, a guest. */
const AWAKE: ReadonlySet<MachineState> = new Set(["starting", "running", "restarting", "suspending", "updating"]);

/**
 * Swaps the owner of every machine of a host that is away. Each swap has the condition that the host is still away, so a host
 * that comes back in the middle keeps the rest. Rejects with `failed_precondition` while the host is up, with
 * `invalid_argument` when there is no such host, and with `unavailable` when the directory does not answer.
 */
export async function evacuate(
  host: string,
  { directory, view }: Pick<Cluster, "directory" | "view">,
  { wanted = () => true }: EvacuateOptions = {},
): Promise<Evacuation[]> {
  await requireAway(host, { directory, view });
  const { entries } = await directory.list(KEYS.machines);
  const promised = new Map<string, number>();
  const all: Evacuation[] = [];
  for (const entry of entries) {
    const owner = ownerOf(entry);
    if (owner.host !== host) continue;
    const id = nameOf(entry.key);
    const config = (await read<ConfigRecord>(directory, `${KEYS.configs}${id}`))?.value;
    if (config !== undefined && !wanted(config, id)) continue;
    const { app, name } = owner;
    const left = (reason: string) => all.push({ machine: id, app, name, reason });
    if (config === undefined) left("its configuration was never published");
    else if ((config.config.mounts ?? []).length > 0) left("it has a volume, which is on the lost host");
    else {
      const { memoryMb } = guestSize(config.config);
      const [to] = byRoom({ memoryMb }, view.hosts(), promised);
      if (to === undefined) left("no other host takes machines");
      else if (await swap(id, { owner, revision: entry.revision, to }, { directory, view })) {
        promised.set(to, (promised.get(to) ?? 0) + memoryMb);
        all.push({ machine: id, app, name, to });
      } else left("its host came back, or someone else moved it, in the same moment");
    }
  }
  return all;
}

async function swap(
  id: string,
  { owner, revision, to }: { owner: OwnerRecord; revision: number; to: string },
  { directory, view }: Pick<Cluster, "directory" | "view">,
): Promise<boolean> {
  const ran = AWAKE.has(view.state(id)?.state ?? "suspended");
  const evacuated = { from: owner.host, at: new Date().toISOString(), ran };
  const done = await directory.transact(
    [
      { key: `${KEYS.machines}${id}`, revision },
      { key: `${KEYS.hosts}${owner.host}`, revision: 0 },
    ],
    [
      put(`${KEYS.machines}${id}`, { ...owner, host: to, epoch: owner.epoch + 1, evacuated }),
      deletion(`${KEYS.moves}${id}`),
    ],
  );
  return done !== undefined;
}

async function requireAway(host: string, { directory, view }: Pick<Cluster, "directory" | "view">): Promise<void> {
  if (view.host(host) === undefined)
    throw new HibernautError("invalid_argument", `The cluster has no host ${host}. See \`hibernaut cluster status\`.`, {
      field: "host",
      value: host,
    });
  if ((await directory.get(`${KEYS.hosts}${host}`)) === undefined) return;
  throw new HibernautError(
    "failed_precondition",
    `Host ${host} is up, so its machines are not lost. Move them with all they have: \`hibernaut hosts drain ${host}\`.`,
    { host },
  );
}
