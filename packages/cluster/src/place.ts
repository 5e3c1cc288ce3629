/**
 * Which host gets a machine or a volume: pure rules. One filter says which hosts take it; where a new machine is made and
 * where one moves to are two questions about the hosts that are left.
 */
import { createHash } from "node:crypto";
import { HibernautError } from "@hibernaut/domain/errors";
import type { ClusterHost } from "./cluster.ts";
import type { HostRecord } from "./keys.ts";

/** A host that may be chosen for something new. */
export interface Candidate extends ClusterHost {
  /** How many machines of the app it has, or is just getting. */
  ofApp: number;
}

/** A machine or volume that is to be created. */
export interface Wanted {
  app: string;
  /** Its name, or anything else that differs from one to the next. */
  name: string;
  memoryMb: number;
  /** The region that the user named. */
  region?: string | undefined;
  /** The host that the user named. */
  host?: string | undefined;
  /** The host that has its volumes. */
  volumeHost?: string | undefined;
  /** What it begins from. */
  template?: WantedTemplate | undefined;
}

/** A template that a new machine begins from. Hosts that have it need not get it first. */
interface WantedTemplate {
  id: string;
  name: string;
  /** Names of the hosts that have it. */
  hosts: readonly string[];
  /** Why a host that does not have it could not use it. Undefined when it could, as far as is known. */
  refusal(host: HostRecord): string | undefined;
}

/** A machine that there is, and that needs another host. */
export interface Homeless {
  memoryMb: number;
  /** Why the machine could not run there as it is. Undefined when it could, as far as is known. */
  refusal?(host: HostRecord): string | undefined;
}

/** A host that is up. */
type Up<T extends ClusterHost> = T & { up: HostRecord };

/** The hosts that take machines. */
function takers<T extends ClusterHost>(hosts: readonly T[], region?: string): Up<T>[] {
  return hosts.filter(
    (host): host is Up<T> =>
      host.up !== undefined && !host.up.draining && (region === undefined || host.up.region === region),
  );
}

/**
 * Returns the hosts in the order in which to try them for something new, best first; never empty. A host that takes no new
 * machines is left out. Those with room come first, and among them those that have its template; then those with fewer machines
 * of the app, so that an app's machines are spread; among equals, a hash decides that prefers hosts with more free memory.
 * Throws `not_found`, `host_unreachable`, `draining`, `failed_precondition` or `invalid_argument` when there is no choice.
 */
export function place(candidates: readonly Candidate[], wanted: Wanted): string[] {
  const { host, volumeHost, region } = wanted;
  if (region !== undefined) requireRegion(candidates, region);
  if (host !== undefined && volumeHost !== undefined && host !== volumeHost) {
    const message = `The machine's volume is on host ${volumeHost}, and not on ${host}. Leave \`host\` out, or use another volume.`;
    throw new HibernautError("invalid_argument", message, { field: "host", volume_host: volumeHost });
  }
  const named = host ?? volumeHost;
  if (named !== undefined) {
    const found = requireHost(candidates, named);
    requireTemplate(candidates, [found], wanted);
    return [named];
  }
  const open = takers(candidates, region);
  if (open.length === 0)
    throw new HibernautError(
      "draining",
      "No host of the cluster takes new machines: all are away or being drained. See `hibernaut cluster status`.",
    );
  return requireTemplate(candidates, open, wanted)
    .map((each) => ({ ...each, rank: rankOf(each, wanted), score: scoreOf(each, wanted) }))
    .toSorted((a, b) => a.rank - b.rank || a.ofApp - b.ofApp || b.score - a.score || (a.name < b.name ? -1 : 1))
    .map(({ name }) => name);
}

/** 0: it has room and the template. 1: it has room. 2: it has the template. 3: neither. */
function rankOf({ name, up }: Up<Candidate>, { memoryMb, template }: Wanted): number {
  return (up.memoryMb.free >= memoryMb ? 0 : 2) + (template === undefined || template.hosts.includes(name) ? 0 : 1);
}

/** Of some hosts, those that have the template, or can get it. Throws when there is none, with the reasons. */
function requireTemplate(
  candidates: readonly Candidate[],
  hosts: readonly Up<Candidate>[],
  { template }: Wanted,
): readonly Up<Candidate>[] {
  if (template === undefined) return hosts;
  const { id, name, hosts: holders, refusal } = template;
  const has = (host: ClusterHost) => holders.includes(host.name);
  if (!candidates.some((host) => has(host) && host.up !== undefined)) {
    const message = `Template ${name} (${id}) is on ${holders.join(", ") || "no host"}, which ${holders.length > 1 ? "are" : "is"} away, so no machine can begin from it. See \`hibernaut cluster status\`.`;
    throw new HibernautError("host_unreachable", message, { template: id, hosts: holders });
  }
  const reasons: string[] = [];
  const fitting = hosts.filter((host) => {
    const reason = has(host) ? undefined : refusal(host.up);
    if (reason !== undefined) reasons.push(`${host.name}: ${reason}`);
    return reason === undefined;
  });
  if (fitting.length > 0) return fitting;
  const message = `Template ${name} (${id}) cannot be used on any host that takes the machine: ${reasons.join("; ")}. It is on ${holders.join(", ")}. Choose that host, or make a template on the other one.`;
  throw new HibernautError("failed_precondition", message, { template: id, hosts: hosts.map((host) => host.name) });
}

/**
 * Returns the hosts that may take a machine, the one with the most room first. Empty when none is up that takes machines, or
 * when all refuse it. `promised` is what machines before this one were given, in MB by host, which the hosts have not
 * published yet.
 */
export function byRoom(
  { memoryMb, refusal }: Homeless,
  hosts: readonly ClusterHost[],
  promised: ReadonlyMap<string, number> = new Map(),
): string[] {
  const room = ({ name, up }: Up<ClusterHost>) => up.memoryMb.free - (promised.get(name) ?? 0);
  // A machine that sleeps needs no room yet, so a full host is better than none.
  const hasRoom = (host: Up<ClusterHost>) => Number(room(host) >= memoryMb);
  return takers(hosts)
    .filter(({ up }) => refusal?.(up) === undefined)
    .toSorted(
      (one, other) => hasRoom(other) - hasRoom(one) || room(other) - room(one) || (one.name < other.name ? -1 : 1),
    )
    .map(({ name }) => name);
}

/** Why each host that takes machines refuses this one, by host. */
export function refusals({ refusal }: Homeless, hosts: readonly ClusterHost[]): Map<string, string> {
  return new Map(
    takers(hosts).flatMap(({ name, up }) => {
      const reason = refusal?.(up);
      return reason === undefined ? [] : [[name, reason] as const];
    }),
  );
}

function requireRegion(candidates: readonly Candidate[], region: string): void {
  const regions = new Set(candidates.flatMap(({ up }) => up?.region ?? []));
  // While no host is up, nothing says which regions there are. What comes next refuses with that reason.
  if (regions.size === 0 || regions.has(region)) return;
  const message = `There is no region ${region.slice(0, 80)} here; the only one is ${[...regions].join(", ")}.`;
  throw new HibernautError("invalid_argument", message, { field: "region" });
}

function requireHost(candidates: readonly Candidate[], name: string): Up<Candidate> {
  const found = candidates.find((each) => each.name === name);
  if (found === undefined) {
    const message = `There is no host ${name.slice(0, 80)} in the cluster. \`hibernaut cluster status\` lists its hosts.`;
    throw new HibernautError("not_found", message, { host: name });
  }
  const { up } = found;
  if (up === undefined) {
    const message = `Host ${name} is away, so nothing can be created there. See \`hibernaut cluster status\`.`;
    throw new HibernautError("host_unreachable", message, { host: name });
  }
  if (!up.draining) return { ...found, up };
  const message = `Host ${name} is being drained and takes no new machines. Choose another one, or try again later.`;
  throw new HibernautError("draining", message, { host: name });
}

/** Rendezvous hashing with weights: the same for the same name, and more often the highest where there is more room. */
function scoreOf(candidate: Up<Candidate>, { app, name }: Wanted): number {
  const hash = createHash("sha256").update(`${candidate.name} ${app} ${name}`).digest().readUInt32BE(0);
  const fraction = (hash + 1) / (2 ** 32 + 1);
  return Math.max(1, candidate.up.memoryMb.free) / -Math.log(fraction);
}
