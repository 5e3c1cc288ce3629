/** Which host a new machine or volume is made on: a pure rule. */
import { createHash } from "node:crypto";
import { HibernautError } from "../domain/errors.ts";
import type { ClusterHost } from "./cluster.ts";

/** A host that may be chosen. */
export interface Candidate extends ClusterHost {
  /** How many machines of the app it has, or is just getting. */
  ofApp: number;
}

/** What is placed. */
export interface Wanted {
  app: string;
  /** Its name, or anything else that differs from one to the next. */
  name: string;
  memoryMb: number;
  /** The host that the user named. */
  host?: string | undefined;
  /** The host that has its volumes. */
  volumeHost?: string | undefined;
}

/**
 * Returns the hosts in the order in which to try them, best first; never empty. A host that takes no new machines is left
 * out. Those with room come first, then those with fewer machines of the app, so that an app's machines are spread; among
 * equals, a hash decides that prefers hosts with more free memory. Throws `not_found`, `host_unreachable`, `draining` or
 * `invalid_argument` when there is no choice.
 */
export function place(candidates: readonly Candidate[], wanted: Wanted): string[] {
  const { host, volumeHost } = wanted;
  if (host !== undefined && volumeHost !== undefined && host !== volumeHost) {
    const message = `The machine's volume is on host ${volumeHost}, and not on ${host}. Leave \`host\` out, or use another volume.`;
    throw new HibernautError("invalid_argument", message, { field: "host", volume_host: volumeHost });
  }
  const named = host ?? volumeHost;
  if (named !== undefined) return [requireHost(candidates, named)];
  const open = candidates.filter(({ up }) => up !== undefined && !up.draining);
  if (open.length === 0)
    throw new HibernautError(
      "draining",
      "No host of the cluster takes new machines: all are away or being drained. See `hibernaut cluster status`.",
    );
  return open
    .map((each) => ({ ...each, hasRoom: freeMb(each) >= wanted.memoryMb, score: scoreOf(each, wanted) }))
    .toSorted(
      (a, b) =>
        Number(b.hasRoom) - Number(a.hasRoom) || a.ofApp - b.ofApp || b.score - a.score || (a.name < b.name ? -1 : 1),
    )
    .map(({ name }) => name);
}

function requireHost(candidates: readonly Candidate[], name: string): string {
  const found = candidates.find((each) => each.name === name);
  if (found === undefined) {
    const message = `There is no host ${name.slice(0, 80)} in the cluster. \`hibernaut cluster status\` lists its hosts.`;
    throw new HibernautError("not_found", message, { host: name });
  }
  if (found.up === undefined) {
    const message = `Host ${name} is away, so nothing can be created there. See \`hibernaut cluster status\`.`;
    throw new HibernautError("host_unreachable", message, { host: name });
  }
  if (!found.up.draining) return name;
  const message = `Host ${name} is being drained and takes no new machines. Choose another one, or try again later.`;
  throw new HibernautError("draining", message, { host: name });
}

function freeMb({ up }: Candidate): number {
  return up?.memoryMb.free ?? 0;
}

/** Rendezvous hashing with weights: the same for the same name, and more often the highest where there is more room. */
function scoreOf(candidate: Candidate, { app, name }: Wanted): number {
  const hash = createHash("sha256").update(`${candidate.name} ${app} ${name}`).digest().readUInt32BE(0);
  const fraction = (hash + 1) / (2 ** 32 + 1);
  return Math.max(1, freeMb(candidate)) / -Math.log(fraction);
}
