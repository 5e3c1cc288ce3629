/** What the proxies of this host are told about a machine of another host: a pure rule. */
import type { ClusterHost, Owned } from "@hibernaut/cluster";
import type { PublishedMachine } from "@hibernaut/cluster/keys";
import { policyIn, type TableMachine } from "../messages.ts";

/** What a host publishes of a machine's row. The rest of it is what the hosts have agreed on. */
type PublishedRoute = Omit<TableMachine, "id" | "app" | "name" | "address" | "state" | "remote">;

/** Returns what a host publishes of a row. Null for a machine without a service, which no request can reach. */
export function routeOf({
  id: _id,
  app: _app,
  name: _name,
  address: _address,
  state: _state,
  remote: _remote,
  ...route
}: TableMachine): PublishedRoute | null {
  return policyIn(route) === null ? null : route;
}

/**
 * Returns the row of another host's machine. Undefined if no request can reach it.
 *
 * @param published what any of its owners published last
 * @param host its owner; undefined if it left the cluster
 */
export function remoteRow(
  owned: Owned,
  published: PublishedMachine | undefined,
  host: ClusterHost | undefined,
): TableMachine | undefined {
  const route = (published?.route ?? null) as PublishedRoute | null;
  if (published === undefined || route === null) return undefined;
  const { id, app, name, address, epoch } = owned;
  // A new owner has not spoken yet. Requests go there and wait, as for a machine that sleeps.
  const state = published.epoch === epoch ? published.state : "suspended";
  const load = published.epoch === epoch ? published.load : 0;
  const peer = host?.up?.peer ?? null;
  const away = peer === null ? `its host ${owned.host} is away` : null;
  return {
    ...route,
    ...{ id, app, name, address, state },
    unreachable: away ?? route.unreachable,
    remote: { host: owned.host, peer, fingerprint: host?.member.fingerprint ?? "", load },
  };
}
