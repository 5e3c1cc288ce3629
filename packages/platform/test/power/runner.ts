/** A machine at work while the power may fail: it sleeps and wakes, counts in memory, and writes to its volume. */
import { setTimeout as delay } from "node:timers/promises";
import type { HibernautClient, Machine, MachineConfig } from "@hibernaut/client";
import { ask, counterOf } from "../helpers/proxied.ts";
import { SMALL_APP } from "../helpers/small-app/image.ts";
import { type Journal, type Order, outcomeOf } from "./journal.ts";
import type { Random } from "./random.ts";

/** Inside an emulated machine, a cold start takes a minute on a quiet host. The API waits up to 300 s. */
const WAIT_S = 300;
const ANSWER_MS = 60_000;
/** The longest that a machine is left alone between two steps. */
const PAUSE_MS = 1500;
const SMALLEST_MEMORY_MB = 128;
/** What a machine that runs is asked for. */
const ORDERS = ["suspend", "suspend", "suspend", "suspend", "suspend", "suspend", "stop", "update"] as const;

/** How to reach a platform: its API, its proxy, and the journal of what both answer. */
export interface Site {
  client: HibernautClient;
  proxyUrl: string;
  journal: Journal;
  random: Random;
}

/** The configuration of a runner. Requests don't wake it: only the journal's own orders do. */
function configOf(policy: "no" | "on-failure", revision: number): MachineConfig {
  return {
    image: SMALL_APP,
    guest: { cpus: 1, memory_mb: SMALLEST_MEMORY_MB },
    services: [{ internal_port: 8080, protocol: "http", autostart: false }],
    mounts: [{ volume: "data", path: "/data" }],
    restart: { policy },
    env: { REVISION: String(revision) },
  };
}

/** One app with one machine, which has one volume. */
export class Runner {
  readonly app: string;
  readonly #policy: "no" | "on-failure";
  #lines = 0;
  #revision = 0;

  constructor(app: string, policy: "no" | "on-failure") {
    this.app = app;
    this.#policy = policy;
  }

  /** Returns its machine, if the platform has it. */
  async find({ client }: Pick<Site, "client">): Promise<Machine | undefined> {
    const apps = await client.listApps();
    if (!apps.some(({ name }) => name === this.app)) return undefined;
    return (await client.listMachines(this.app)).find(({ state }) => state !== "destroyed");
  }

  /** Creates what does not exist yet: the app, and its machine, which starts. */
  async make(site: Site): Promise<void> {
    const { client, journal } = site;
    const apps = await client.listApps();
    if (!apps.some(({ name }) => name === this.app))
      await journal.write(`app ${this.app}`, "there", () => client.createApp(this.app));
    if ((await this.find(site)) !== undefined) return;
    const config = configOf(this.#policy, this.#revision);
    await journal.write(`machine ${this.app}`, "there", () => client.createMachine(this.app, { config }));
  }

  /** Asks the app who it is. Undefined when it does not answer. */
  async ask({ proxyUrl, journal }: Site, machine: string): Promise<{ nonce: string; count: number } | undefined> {
    journal.add({ kind: "asked", machine });
    const reply = await ask({ proxyUrl, app: this.app }, "/", { timeoutMs: ANSWER_MS }).catch(() => undefined);
    if (reply?.status !== 200) return undefined;
    const { nonce, count } = counterOf(reply);
    journal.add({ kind: "answered", machine, nonce, count });
    return { nonce, count };
  }

  /** Reads what is on its volume. Undefined when the app does not answer. */
  async read({ proxyUrl }: Site): Promise<string[] | undefined> {
    const reply = await ask({ proxyUrl, app: this.app }, "/notes", { timeoutMs: ANSWER_MS }).catch(() => undefined);
    return reply?.status === 200 ? reply.text.split("\n").filter((line) => line !== "") : undefined;
  }

  /** Has it suspended, started and so on, and waits until it rests. */
  async order({ client, journal }: Site, machine: string, order: Order): Promise<string> {
    journal.add({ kind: "ordered", machine, order });
    if (order === "start") await client.startMachine(this.app, machine);
    if (order === "suspend") await client.suspendMachine(this.app, machine);
    if (order === "stop") await client.stopMachine(this.app, machine);
    if (order === "update") {
      this.#revision += 1;
      await client.updateMachine(this.app, machine, configOf(this.#policy, this.#revision));
    }
    return this.settle({ client, journal }, machine);
  }

  /** Waits until it rests, and records in which state. */
  async settle({ client, journal }: Pick<Site, "client" | "journal">, machine: string): Promise<string> {
    for (;;) {
      await client.waitForMachine(this.app, machine, { state: "settled", timeout: WAIT_S });
      const { state } = await client.getMachine(this.app, machine);
      journal.add({ kind: "reported", machine, state });
      if (state !== "restarting") return state;
      await client.waitForMachine(this.app, machine, { timeout: WAIT_S });
    }
  }

  /** Works until the signal, or until the power fails. */
  async work(site: Site, signal: AbortSignal): Promise<void> {
    const { random } = site;
    await this.make(site);
    const id = (await this.find(site))?.id;
    if (id === undefined) throw new Error(`${this.app} has no machine`);
    let state = await this.settle(site, id);
    while (!signal.aborted) {
      if (state === "running") {
        for (let lines = random.between(1, 4); lines > 0; lines -= 1) await this.#note(site, id);
        await this.ask(site, id);
        state = await this.order(site, id, random.pick(ORDERS));
      } else {
        await delay(random.between(0, PAUSE_MS), undefined, { signal }).catch(() => {});
        state = await this.order(site, id, state === "suspended" && random.between(1, 12) === 1 ? "update" : "start");
      }
    }
  }

  async #note({ proxyUrl, journal }: Site, machine: string): Promise<void> {
    this.#lines += 1;
    const line = `${this.app}.${this.#lines}`;
    const outcome = await outcomeOf(async () => {
      const options = { method: "POST", body: line, timeoutMs: ANSWER_MS };
      const { status } = await ask({ proxyUrl, app: this.app }, "/sure", options);
      // Whatever the proxy says, the app may have written the line.
      if (status !== 200) throw new Error(`it answered ${status}`);
    });
    journal.add({ kind: "noted", machine, line, outcome: outcome === "acknowledged" ? "acknowledged" : "unknown" });
  }
}
