/** What administrators do with a cluster while its hosts run: see it, let hosts join, remove a host that is gone. */
import { X509Certificate } from "node:crypto";
import { HibernautError } from "@hibernaut/domain/errors";
import { type Pair, validity } from "@hibernaut/lib/certificates";
import type { Admission } from "./admission.ts";
import type { Cluster, ClusterHost, LeaseState } from "./cluster.ts";
import { type Home, placeText } from "./home.ts";
import { KEYS } from "./keys.ts";
import { deletion } from "./stored.ts";

interface HostStatus extends ClusterHost {
  /** How many machines it owns. */
  machines: number;
}

export interface ClusterStatus {
  id: string;
  region: string;
  /** RFC 3339; empty while it was never read. */
  createdAt: string;
  /** The host that answers. */
  host: string;
  lease: LeaseState;
  /** Where the directory is. */
  directory: string;
  /** Seconds since this host has heard of the directory; 0 while it is connected. */
  staleS: number;
  /** When this host's certificate ends, RFC 3339. It renews itself. */
  certificateExpiresAt: string;
  hosts: HostStatus[];
}

interface AdminOptions {
  cluster: Omit<Cluster, "peers">;
  home: Home;
  admission: Admission;
  identity(): Pair;
}

export class ClusterAdmin {
  readonly #options: AdminOptions;

  constructor(options: AdminOptions) {
    this.#options = options;
  }

  status(): ClusterStatus {
    const { cluster, home, identity } = this.#options;
    const { view, lease, record, host } = cluster;
    const machines = Map.groupBy(view.machines(), (machine) => machine.host);
    const { to } = validity(new X509Certificate(identity().certificate));
    return {
      ...{ id: record.id, region: record.region, createdAt: record.createdAt, host, lease: lease.state },
      directory: placeText(home.directory),
      staleS: this.#age(),
      certificateExpiresAt: new Date(to).toISOString(),
      hosts: view.hosts().map((each) => ({ ...each, machines: machines.get(each.name)?.length ?? 0 })),
    };
  }

  /** How this host is in the cluster, in the words of the API. */
  health(): { host: string; lease: LeaseState; directory_age_s: number } {
    const { host, lease } = this.#options.cluster;
    return { host, lease: lease.state, directory_age_s: this.#age() };
  }

  createToken(lifetimeMs: number): Promise<{ token: string; expiresAt: string }> {
    return this.#options.admission.createToken(lifetimeMs);
  }

  /**
   * Removes a host that is gone for good. Rejects with `not_found` when there is none of that name, and with
   * `failed_precondition` while it is up, is this one, or owns machines.
   */
  async remove(name: string): Promise<void> {
    const { view, directory, host } = this.#options.cluster;
    const found = view.host(name);
    if (found === undefined)
      throw new HibernautError(
        "not_found",
        `There is no host ${name} in the cluster. \`hibernaut cluster status\` lists its hosts.`,
        { host: name },
      );
    if (name === host || found.up !== undefined)
      throw new HibernautError(
        "failed_precondition",
        `Host ${name} is up. Stop its platform and run \`hibernaut cluster leave\` there.`,
        { host: name },
      );
    const left = view.machines().filter((machine) => machine.host === name).length;
    if (left > 0)
      throw new HibernautError(
        "failed_precondition",
        `Host ${name} has ${left} machine${left === 1 ? "" : "s"}. Run \`hibernaut hosts evacuate ${name} --dead\`, destroy what is left, and remove the host after that.`,
        { host: name, machines: left },
      );
    const key = `${KEYS.members}${name}`;
    const entry = await directory.get(key);
    if (entry === undefined) return;
    if (
      (await directory.transact([entry, { key: `${KEYS.hosts}${name}`, revision: 0 }], [deletion(key)])) === undefined
    )
      throw new HibernautError(
        "aborted",
        `Host ${name} came back at this moment. Look at \`hibernaut cluster status\`.`,
      );
  }

  #age(): number {
    const { staleSince } = this.#options.cluster.view;
    return staleSince === undefined ? 0 : Math.ceil((performance.now() - staleSince) / 1000);
  }
}
