/** An app whose machine sleeps and wakes in an outer machine: what it says of itself, and what its clock says. */
import type { HibernautClient, MachineConfig } from "@hibernaut/client";
import { ask, counterOf, wakeOf } from "../helpers/proxied.ts";
import { SMALL_APP } from "../helpers/small-app/image.ts";

const APP = "sleeper";
/** The API waits no longer. */
const WAIT_S = 300;
const ANSWER_MS = 300_000;
/** The header `Date` counts seconds. */
const DATE_MS = 1000;

const CONFIG: MachineConfig = {
  image: SMALL_APP,
  guest: { cpus: 1, memory_mb: 128 },
  // Every wake is to be one from the snapshot.
  services: [{ internal_port: 8080, protocol: "http", autostop: "off", keep_warm: 0 }],
  restart: { policy: "no" },
};

/** What the app's process says of itself. */
export interface Look {
  nonce: string;
  count: number;
  uptimeMs: number;
  /** How far its wall clock is from its host's, in milliseconds, beyond what cannot be told. */
  offMs: number;
}

export class Sleeper {
  readonly #client: HibernautClient;
  readonly #proxyUrl: string;
  #id = "";

  constructor({ client, proxyUrl }: { client: HibernautClient; proxyUrl: string }) {
    this.#client = client;
    this.#proxyUrl = proxyUrl;
  }

  /** Makes app and machine, and resolves when it runs. */
  async make(): Promise<void> {
    await this.#client.createApp(APP);
    this.#id = (await this.#client.createMachine(APP, { config: CONFIG })).machine_id;
    await this.reach("running");
  }

  /** Finds the machine that was made before the outer machine booted. Returns its state. */
  async find(): Promise<string> {
    const [machine] = await this.#client.listMachines(APP);
    if (machine === undefined) throw new Error("the machine is gone");
    this.#id = machine.machine_id;
    return machine.state;
  }

  async reach(state: "running" | "suspended"): Promise<void> {
    for (;;) {
      await this.#client.waitForMachine(APP, this.#id, { state: "settled", timeout: WAIT_S });
      const { state: now, state_reason: reason } = await this.#client.getMachine(APP, this.#id);
      if (now === state) return;
      if (now === "failed" || now === "stopped") throw new Error(`the machine is ${now}: ${reason}`);
    }
  }

  async suspend(): Promise<void> {
    await this.#client.suspendMachine(APP, this.#id);
    await this.reach("suspended");
  }

  /** The first request, which wakes the machine, and how it woke. */
  async wake(): Promise<{ kind: string; ms: number }> {
    return wakeOf(await this.#ask());
  }

  /** What the last start was, such as `{ kind: "resume", reason: "snapshot" }`. */
  async lastBoot() {
    return (await this.#client.getMachine(APP, this.#id)).last_boot;
  }

  /** Asks the app between two looks at the clock of the outer machine, which has its own idea of the time. */
  async look(): Promise<Look> {
    const early = await this.#date();
    const { nonce, count, uptime_ms: uptimeMs, now } = counterOf(await this.#ask());
    const late = (await this.#date()) + DATE_MS;
    const time = Date.parse(now);
    return { nonce, count, uptimeMs, offMs: Math.max(0, early - time, time - late) };
  }

  /** What time it is in the outer machine, or up to a second later. */
  async #date(): Promise<number> {
    const { headers } = await fetch(`${this.#client.apiUrl}/v1/health`);
    return Date.parse(headers.get("date") ?? "");
  }

  async #ask() {
    const answer = await ask({ proxyUrl: this.#proxyUrl, app: APP }, "/", { timeoutMs: ANSWER_MS });
    if (answer.status !== 200) throw new Error(`the proxy answered ${answer.status}: ${answer.text}`);
    return answer;
  }
}
