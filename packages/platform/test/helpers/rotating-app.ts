/** An app with three machines under the loads that its rotation is for: steady and light, bursts, and gaps. */
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import type { Place } from "./served.ts";
import { SMALL_APP } from "./small-app/image.ts";
import { Visits } from "./visits.ts";

const MACHINES = 3;
/** At this many open requests of one machine, the proxy starts another one; at that many, requests wait. */
const LIMITS = { soft_limit: 3, hard_limit: 6 };
/** At the same time, and below the soft limit, so that one machine is enough however slow it is. */
const STEADY_VISITORS = 2;
/** In milliseconds: about ten requests per second. */
const STEADY_PAUSE: [number, number] = [50, 350];
/** At the same time. Two machines have five each, which is over their soft limit: three are needed. */
const CROWD = 10;
const CROWD_MS = 200;
/** Only a fault reaches it: three cold starts take 6 s of a core, and ten times that while others use the host. */
const START_LIMIT_S = 240;
/** Only a fault reaches it: a resume takes a second on a busy host, and a machine in excess sleeps after its idle time. */
const STATES_LIMIT_MS = 60_000;
const EVENTS_TOLD = 6;
/** How often the states are looked at. */
const LOOK_MS = 200;

export class RotatingApp {
  readonly name: string;
  readonly visits: Visits;
  readonly #place: Place;
  readonly #idleMs: number;

  private constructor(place: Place, name: string, idleS: number) {
    this.name = name;
    this.#place = place;
    this.#idleMs = idleS * 1000;
    this.visits = new Visits(() => ({ proxyUrl: place.proxyUrl, app: name }));
  }

  /** Creates its machines in an existing app, all at once, and waits until they have started. `idleS` is their idle timeout. */
  static async create(place: Place, name: string, idleS: number): Promise<RotatingApp> {
    const service = { internal_port: 8080, autostop: "suspend" as const, idle_timeout: idleS, concurrency: LIMITS };
    const config = { image: SMALL_APP, guest: { memory_mb: 160 }, services: [service] };
    const made = await Promise.all(
      Array.from({ length: MACHINES }, () => place.client.createMachine(name, { config })),
    );
    // The first may be asleep again before the last one runs.
    const up = { state: ["running", "suspended", "failed"] as const, timeout: START_LIMIT_S };
    for (const { id } of made) {
      const state = await place.client.waitForMachine(name, id, up);
      const { state_reason: reason } = await place.client.getMachine(name, id);
      if (state === "failed") throw new Error(`${id} of ${name} did not start: ${reason}`);
    }
    return new RotatingApp(place, name, idleS);
  }

  /** A burst brings all machines up, and lasts a while longer. */
  async burst(ms: number): Promise<void> {
    await this.#whileAllRun(() => delay(ms));
  }

  /** A light load leaves one machine awake, and wakes no other one. */
  async steady(ms: number): Promise<void> {
    const visitor = (until: AbortSignal) => this.visits.come(STEADY_PAUSE, until);
    await during(Array<typeof visitor>(STEADY_VISITORS).fill(visitor), async () => {
      await this.#reaches(1);
      await this.#staysAtOne(ms);
    });
  }

  /** Requests come just when the one machine that runs falls asleep: a little before that, in the middle, or after it. */
  async onEdge(ms: number): Promise<void> {
    const around: [number, number] = [this.#idleMs - 300, this.#idleMs + 500];
    await during([(until) => this.visits.come(around, until)], () => this.#staysAtOne(ms));
  }

  /** Nobody comes, and all sleep. */
  async gap(): Promise<void> {
    await this.#reaches(0);
  }

  /** Fails unless each machine has counted and written what it has acknowledged, once, since it was created. */
  async check(): Promise<void> {
    const { counted, written } = this.visits;
    const notes: string[] = [];
    // Past the proxy, to ask each. That alone does not keep them awake, so a crowd does.
    await this.#whileAllRun(async () => {
      for (const { id, private_address: address } of await this.#place.client.listMachines(this.name)) {
        const read = async (path: string) => (await fetch(`http://${address}:8080${path}`)).text();
        const { nonce, count } = JSON.parse(await read("/")) as { nonce: string; count: number };
        expect(count - 1, `requests that ${id} counted`).toBe(counted.get(nonce) ?? 0);
        counted.delete(nonce);
        notes.push(...(await read("/layer")).split("\n").filter((line) => line !== ""));
      }
    });
    expect([...counted.keys()], "processes that are gone").toEqual([]);
    expect(notes.toSorted()).toEqual(written.toSorted());
  }

  async #whileAllRun(work: () => Promise<unknown>): Promise<void> {
    const crowd = (until: AbortSignal) => this.visits.crowd(CROWD_MS, until);
    await during(Array<typeof crowd>(CROWD).fill(crowd), async () => {
      await this.#reaches(MACHINES);
      await work();
    });
  }

  async #awake(): Promise<number> {
    const machines = await this.#place.client.listMachines(this.name);
    return machines.filter(({ state }) => state !== "suspended").length;
  }

  async #reaches(awake: number): Promise<void> {
    const end = performance.now() + STATES_LIMIT_MS;
    while ((await this.#awake()) !== awake) {
      if (performance.now() > end) throw new Error(`${awake} should be awake by now of ${await this.#history()}`);
      await delay(LOOK_MS);
    }
  }

  /** What happened last to each machine, for the report of a failure. */
  async #history(): Promise<string> {
    const lines = [];
    for (const { id, state } of await this.#place.client.listMachines(this.name)) {
      const events = await this.#place.client.listMachineEvents(this.name, id, { limit: EVENTS_TOLD });
      const told = events.map(({ at, type, details }) => `  ${at} ${type} ${JSON.stringify(details)}`);
      lines.push(`${this.name} ${id}, ${state}, newest first:`, ...told);
    }
    return lines.join("\n");
  }

  async #staysAtOne(ms: number): Promise<void> {
    const end = performance.now() + ms;
    while (performance.now() < end) {
      expect(await this.#awake(), `machines of ${this.name} awake under a light load`).toBeLessThanOrEqual(1);
      await delay(LOOK_MS);
    }
  }
}

/** Does the work while the clients come, and waits for the last answer of each. */
async function during(clients: ((until: AbortSignal) => Promise<void>)[], work: () => Promise<void>): Promise<void> {
  const over = new AbortController();
  const all = clients.map((client) => client(over.signal));
  try {
    await work();
  } finally {
    over.abort();
    await Promise.all(all);
  }
}
