/** What happens to the hosts, one thing after the other. */
import { randomInt } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { LabHost } from "../../../../scripts/lab/host.mjs";
import type { Lab } from "../../../../scripts/lab/lab.mjs";

/** Longer than a host's lease lives, in milliseconds. */
const PAST_THE_LEASE_MS = 15_000;
/** In between, everything works. */
const CALM_MS = 5_000;

type Fault = (host: LabHost) => Promise<void>;

export class Faults {
  /** How often each kind has happened. */
  readonly done: Record<string, number> = {};
  readonly #lab: Lab;
  /** When a host's proxy went, and when it was back, on the clock of `performance.now()`. */
  readonly #down: { host: LabHost; from: number; until: number }[] = [];

  constructor(lab: Lab) {
    this.#lab = lab;
  }

  /** Lets faults happen until `going` returns false, each kind in turn, to any host. At the end all hosts are up. */
  async go(going: () => boolean, say: (line: string) => void): Promise<void> {
    const kinds = Object.entries(this.#kinds());
    for (let turn = 0; going(); turn += 1) {
      const [name, fault] = kinds[turn % kinds.length] as [string, Fault];
      const host = this.#lab.hosts[randomInt(this.#lab.hosts.length)] as LabHost;
      say(`${name}: ${host.name}`);
      await fault(host);
      this.done[name] = (this.done[name] ?? 0) + 1;
      await delay(CALM_MS);
    }
  }

  /** Whether the host's proxy was away at some time since then. */
  befell(host: LabHost, since: number): boolean {
    return this.#down.some((each) => each.host === host && each.until >= since);
  }

  async #without(host: LabHost, work: () => Promise<void>): Promise<void> {
    const span = { host, from: performance.now(), until: Number.POSITIVE_INFINITY };
    this.#down.push(span);
    await work();
    span.until = performance.now();
  }

  #kinds(): Record<string, Fault> {
    const { etcd, network, hosts } = this.#lab;
    return {
      "platform killed": (host) =>
        this.#without(host, async () => {
          await host.end("SIGKILL");
          await host.start();
        }),
      "platform stopped past its lease": (host) =>
        this.#without(host, async () => {
          host.signal("SIGSTOP");
          await delay(PAST_THE_LEASE_MS);
          host.signal("SIGCONT");
        }),
      "host cut off": async (host) => {
        const others = hosts.filter((other) => other !== host).map((other) => other.number);
        await network.partition(host.number, others);
        await delay(PAST_THE_LEASE_MS);
        await network.heal(host.number);
      },
      "member of etcd killed": async (host) => {
        await etcd.kill(host.number);
        await delay(CALM_MS);
        await etcd.start(host.number);
      },
      "leader of etcd killed": async () => {
        const leader = await etcd.leader();
        await etcd.kill(leader);
        await delay(CALM_MS);
        await etcd.start(leader);
      },
      "host killed with all that runs on it": (host) =>
        this.#without(host, async () => {
          await host.killAll();
          await delay(PAST_THE_LEASE_MS);
          await etcd.start(host.number);
          await host.start();
        }),
    };
  }
}
