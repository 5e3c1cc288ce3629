/**
 * Machines that other hosts may take without anyone being asked (`on_host_loss: recreate`). Two rules belong together: the lost
 * host ends them once it has been without its lease for the grace, and another host takes them only after that, with a
 * margin for clocks that run at different speeds.
 */
import type { MachineConfig } from "@hibernaut/domain/config";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import type { Resources } from "@hibernaut/machines";
import type { Cluster, View } from "../cluster.ts";
import { isFirst } from "../first-host.ts";
import { type ConfigRecord, KEYS, nameOf } from "../keys.ts";
import type { Log } from "../ownership/retry.ts";
import { evacuate } from "./evacuate.ts";

/** How often hosts are looked at, in milliseconds. */
const LOOK_MS = 1_000;
/** Clocks of two hosts, and a platform that is slow to end its machines, may differ by this much, in milliseconds. */
const MARGIN_MS = 15_000;

/** Whether another host may recreate a machine when its host is lost. A volume is only where it is. Pure. */
function isRecreated({ on_host_loss: onHostLoss, mounts = [] }: MachineConfig): boolean {
  return onHostLoss === "recreate" && mounts.length === 0;
}

function publishedConfig(view: Pick<View, "value">, id: string): MachineConfig | undefined {
  return (view.value(`${KEYS.configs}${id}`) as ConfigRecord | undefined)?.config;
}

/** Whether others may recreate it: as it is here, or as it was published last, which is what they go by. */
export function mayBeRecreated(
  { id, config }: Pick<MachineRecord, "id" | "config">,
  view: Pick<View, "value">,
): boolean {
  return isRecreated(config) || isRecreated(publishedConfig(view, id) ?? config);
}

interface LostHostsOptions {
  cluster: Cluster;
  /** For how long this host may start machines after its lease has ended, in milliseconds. Others are given as much, or theirs. */
  graceMs: number;
  custody: Pick<Resources["custody"], "records" | "fence">;
  log: Log;
  /** Milliseconds of a steady clock. */
  now?(): number;
}

export class LostHosts {
  readonly #options: Required<LostHostsOptions>;
  /** Since when this host has seen others away, by its own clock. */
  readonly #away = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #unsubscribe: (() => void) | undefined;
  #unsubscribeView: (() => void) | undefined;
  #working = false;

  constructor(options: LostHostsOptions) {
    this.#options = { now: () => performance.now(), ...options };
  }

  start(): void {
    const { cluster } = this.#options;
    this.#timer = setInterval(() => background(this.look(), "looking for lost hosts"), LOOK_MS).unref();
    this.#unsubscribe = cluster.lease.subscribe((state) => {
      if (state === "lost") this.#fence();
    });
    if (cluster.lease.state === "lost") this.#fence();
    // Also one that is back for less than the time between two looks.
    this.#unsubscribeView = cluster.view.subscribe(KEYS.hosts, (changes) => {
      for (const { key, value } of changes) if (value !== null) this.#away.delete(nameOf(key));
    });
  }

  close(): void {
    clearInterval(this.#timer);
    this.#unsubscribe?.();
    this.#unsubscribeView?.();
  }

  /** Takes the machines of hosts that have been away for long enough, if that is for this host to do. Never rejects. */
  async look(): Promise<void> {
    const { cluster, graceMs, now } = this.#options;
    const { view, lease } = cluster;
    // What this host has not heard is not what has not happened.
    if (lease.state !== "live" || view.staleSince !== undefined) {
      this.#away.clear();
      // Again: a guest that was being booted, or was not known, the last time.
      if (lease.state === "lost") this.#fence();
      return;
    }
    const hosts = view.hosts();
    // Each host ends its machines after its own grace.
    const graceOf = (name: string) => Math.max(graceMs, view.host(name)?.member.graceMs ?? 0);
    for (const { name, up } of hosts)
      if (up !== undefined) this.#away.delete(name);
      else if (!this.#away.has(name)) this.#away.set(name, now());
    // One host is enough, and a second one would do no harm: the swaps decide.
    if (!isFirst(cluster) || this.#working) return;
    this.#working = true;
    try {
      for (const [name, since] of [...this.#away])
        if (now() - since >= graceOf(name) + MARGIN_MS && this.#hasRecreated(name)) await this.#take(name);
    } finally {
      this.#working = false;
    }
  }

  #hasRecreated(host: string): boolean {
    const { view } = this.#options.cluster;
    return view.machines().some((owned) => {
      if (owned.host !== host || this.#isLeft(host, owned.id)) return false;
      const config = publishedConfig(view, owned.id);
      return config !== undefined && isRecreated(config);
    });
  }

  /** Whether a platform that was stopped has left the machine's guest, which nobody would end. */
  #isLeft(host: string, id: string): boolean {
    const member = this.#options.cluster.view.host(host)?.member;
    return member?.stoppedAt !== undefined && (member.left?.includes(id) ?? true);
  }

  async #take(host: string): Promise<void> {
    const { cluster, log } = this.#options;
    try {
      const all = await evacuate(host, cluster, {
        wanted: ({ config }, id) => isRecreated(config) && !this.#isLeft(host, id),
      });
      for (const { machine, to, reason } of all)
        if (to === undefined) log.warn({ machine, host, reason }, "a machine of a lost host could not be recreated");
        else log.info({ machine, host, to }, "a machine of a lost host is recreated");
    } catch (error) {
      log.warn({ host, reason: messageOf(error) }, "the machines of a lost host could not be recreated");
    }
  }

  /** This host is the lost one, as others see it: they may take these machines soon. */
  #fence(): void {
    const { custody, log, cluster } = this.#options;
    for (const record of custody.records())
      if (mayBeRecreated(record, cluster.view))
        custody.fence(record.id).catch((error: unknown) => {
          log.warn({ machine: record.id, reason: messageOf(error) }, "a machine could not be ended");
        });
  }
}
