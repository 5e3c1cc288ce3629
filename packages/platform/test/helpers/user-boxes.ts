/** A machine for each user, and a router app that sends requests on to them. */
import { expect } from "vitest";
import type { Answer } from "./http.ts";
import { ask, wakeOf } from "./proxied.ts";
import type { Place } from "./served.ts";
import { SMALL_APP } from "./small-app/image.ts";

/** The app of the machines; `place.app` is their router. */
export const USERS = "users";
/** Requests at the same time. */
const VISITORS = 8;
/** Only a fault reaches it: a few cold starts on a busy host. */
const START_LIMIT_S = 240;
/** One request in ten is a POST that the machine writes down. */
const NOTED = 10;

type Way = (name: string, id: string) => Promise<Answer>;

export class UserBoxes {
  readonly #place: Place;
  readonly #ids: ReadonlyMap<string, string>;
  readonly #counts = new Map<string, number>();
  readonly #notes = new Map<string, string[]>();
  /** How a request can reach a machine. Each path is one that the small app answers with its label and its count. */
  readonly #ways: Record<string, Way> = {
    "the name in the hostname": (name) => this.at(`${name}.${USERS}.localhost`),
    "the id in the hostname": (_name, id) => this.at(`${id}.${USERS}.localhost`),
    "the port in the hostname": (name) => this.at(`8080--${name}.${USERS}.localhost.`),
    "a header": (name) => this.at(`${USERS}.localhost`, "/", { "Hibernaut-Machine": name }),
    "Fly's header": (_name, id) => this.at(`${USERS}.localhost`, "/", { "fly-force-instance-id": id }),
    "the router": (_name, id) => this.at(this.#router, `/replay/app=${USERS};instance=${id};state=${id}`),
  };

  private constructor(place: Place, ids: ReadonlyMap<string, string>) {
    this.#place = place;
    this.#ids = ids;
  }

  /** Creates the router and a machine for each name, and waits until the latter sleep. */
  static async create(place: Place, names: readonly string[]): Promise<UserBoxes> {
    const { client, app } = place;
    const guest = { memory_mb: 160 };
    const service = {
      ...{ internal_port: 8080, autostop: "suspend" as const, idle_timeout: 2 },
      ...{ placement: "pinned" as const, machine_hostnames: true, replay_from: [app] },
    };
    await client.createApp(USERS);
    const router = await client.createMachine(app, {
      config: { image: SMALL_APP, guest, services: [{ internal_port: 8080 }] },
    });
    const made = await Promise.all(
      names.map((name) => {
        const init = { cmd: ["--label", name, "--notes", "/tmp/notes"] };
        return client.createMachine(USERS, { name, config: { image: SMALL_APP, guest, init, services: [service] } });
      }),
    );
    await client.waitForMachine(app, router.id, { state: ["running"], timeout: START_LIMIT_S });
    for (const { id } of made) await client.waitForMachine(USERS, id, { state: ["suspended"], timeout: START_LIMIT_S });
    return new UserBoxes(place, new Map(made.map(({ name, id }) => [name, id])));
  }

  /** A request to any hostname. */
  at(host: string, path = "/", headers: Record<string, string> = {}): Promise<Answer> {
    return ask({ proxyUrl: this.#place.proxyUrl, app: USERS, host }, path, { headers });
  }

  idOf(name: string): string {
    return this.#ids.get(name) ?? "";
  }

  /** The machines that do not sleep. */
  async awake(): Promise<string[]> {
    const machines = await this.#place.client.listMachines(USERS);
    return machines
      .filter(({ state }) => state !== "suspended")
      .map(({ name }) => name)
      .toSorted();
  }

  /** Visits a machine that sleeps, through the router or by its hostname, and fails unless that woke it. */
  async wake(name: string, by: "hostname" | "replay"): Promise<void> {
    const [host, path] =
      by === "hostname" ? [`${name}.${USERS}.localhost`, "/"] : [this.#router, `/replay/app=${USERS};instance=${name}`];
    const answer = await this.at(host, path);
    this.#count(name);
    expect([answer.text, wakeOf(answer).kind]).toEqual([
      `${name} ${this.#counts.get(name)}`,
      expect.stringMatching(/^(warm|resume)$/),
    ]);
    expect(answer.headers).not.toHaveProperty("fly-replay");
  }

  /** Visits the machines in turn, in all ways, several at a time. Each answer has to be that of the right machine. */
  async visit(names: readonly string[], requests: number): Promise<void> {
    const ways = Object.entries(this.#ways);
    const turns = Array.from({ length: requests }, (_, turn) => turn).values();
    const visitor = async () => {
      for (const turn of turns) {
        // Each machine in turn, and each way for all of them.
        const name = names[turn % names.length] ?? "";
        const [way, send] = ways[Math.floor(turn / names.length) % ways.length] ?? [];
        if (turn % NOTED === NOTED - 1) await this.#note(name, `${name} ${turn}`);
        else {
          const answer = await send?.(name, this.idOf(name));
          expect(answer?.text.split(" ")[0], `${way} of ${name}: ${answer?.status} ${answer?.text}`).toBe(name);
          this.#count(name);
        }
      }
    };
    await Promise.all(Array.from({ length: VISITORS }, visitor));
  }

  /** Fails unless the machine has counted and written down exactly what it was sent. */
  async check(name: string): Promise<void> {
    const host = `${name}.${USERS}.localhost`;
    this.#count(name);
    expect((await this.at(host)).text, "it counted what it answered").toBe(`${name} ${this.#counts.get(name)}`);
    const kept = (await this.at(host, "/notes")).text.split("\n").filter((line) => line !== "");
    expect(kept.toSorted()).toEqual((this.#notes.get(name) ?? []).toSorted());
  }

  /** How often a request has woken the machine. */
  async wakes(name: string): Promise<number> {
    const events = await this.#place.client.listMachineEvents(USERS, this.idOf(name), { limit: 1000 });
    return events.filter(({ type, details }) => type === "start" && details["by"] === "proxy").length;
  }

  get #router(): string {
    return `${this.#place.app}.localhost`;
  }

  async #note(name: string, body: string): Promise<void> {
    const path = `/replay/app=${USERS};instance=${name}`;
    const target = { proxyUrl: this.#place.proxyUrl, app: this.#place.app };
    expect((await ask(target, path, { method: "POST", body })).text, `POST ${path}`).toBe("kept");
    this.#notes.set(name, [...(this.#notes.get(name) ?? []), body]);
  }

  #count(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }
}
