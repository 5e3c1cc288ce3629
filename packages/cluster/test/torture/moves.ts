/** Moves machines between the hosts, whatever happens to these. */
import { randomInt } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { LabHost } from "../../../../scripts/lab/host.mjs";
import type { Api, Refused } from "./api.ts";

/** Between two moves, in milliseconds. */
const PAUSE_MS = [2_000, 10_000] as const;
/** What the API may say while hosts fail, besides that nobody answers. It never is a fault of its own. */
const KNOWN = new Set([
  ...["aborted", "host_unreachable", "moved", "unavailable"],
  // The other host is starting and takes no machines yet, or the guest was busy with something that cannot be suspended.
  "failed_precondition",
  // The machine is there already: an earlier move was carried out, and its answer was lost.
  "invalid_argument",
  ...["no answer", "cut off"],
]);

export class Moves {
  done = 0;
  /** Refused or broken off, by code. */
  readonly refused: Record<string, number> = {};
  readonly strange: string[] = [];
  readonly #api: Api;
  readonly #hosts: readonly LabHost[];

  constructor(api: Api, hosts: readonly LabHost[]) {
    this.#api = api;
    this.#hosts = hosts;
  }

  /** Moves a machine back and forth, by commands to any host. */
  async go(app: string, id: string, going: () => boolean): Promise<void> {
    while (going()) {
      await delay(randomInt(...PAUSE_MS));
      try {
        await this.#api.call(this.#any(), "POST", `/apps/${app}/machines/${id}/move`, { host: this.#any().name });
        this.done += 1;
      } catch (error) {
        const { code, message } = error as Refused;
        this.refused[code] = (this.refused[code] ?? 0) + 1;
        if (!KNOWN.has(code)) this.strange.push(`${code}: ${message}`);
      }
    }
  }

  #any(): LabHost {
    return this.#hosts[randomInt(this.#hosts.length)] as LabHost;
  }
}
