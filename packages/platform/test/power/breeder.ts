/** Forks a machine, keeps templates of it and has machines born from those while the power may fail. */
import type { HibernautClient, Machine } from "@hibernaut/client";
import { ask, counterOf } from "../helpers/proxied.ts";
import { SMALL_APP } from "../helpers/small-app/image.ts";
import { type Order, outcomeOf } from "./journal.ts";
import type { Site } from "./runner.ts";

const APP = "nursery";
const PARENT = "parent";
/** Of what takes the time of each check: every one of them is woken. */
const MOST_CHILDREN = 3;
const MOST_TEMPLATES = 2;
/** Inside an emulated machine, a cold start takes a minute on a quiet host. */
const WAIT_S = 300;
const ANSWER_MS = 60_000;
/** As often as the check tries for other machines. */
const STARTS = 3;
/** What a machine that runs, or sleeps, is used for. */
const STEPS = ["fork", "fork", "twins", "template", "birth", "birth", "sleep", "wake"] as const;

/** The nonce of a process is in its memory: a machine that answers with the nonce of its parent has inherited it. */
export class Breeder {
  #number = 0;
  #nonce = "";
  /** As far as the breeder knows, oldest first, with the nonce that each inherits. */
  readonly #children = new Map<string, string>();
  readonly #templates = new Map<string, string>();
  /** Children that a check has woken: they live on, and are no longer as they were born. */
  readonly #woken = new Set<string>();

  /** Works until the signal, or until the power fails. */
  async work(site: Site, signal: AbortSignal): Promise<void> {
    await this.#makeRoom(site);
    await this.#make(site);
    while (!signal.aborted) {
      const parent = await this.#parent(site);
      if (parent !== undefined) await this.#step(site, parent);
      await this.#makeRoom(site);
    }
  }

  /** Wakes everyone who was born, and has someone born from each template. Returns who they take themselves for. */
  async survey(site: Site): Promise<Record<string, string>> {
    const { client, journal } = site;
    const found: Record<string, string> = {};
    if (!(await client.listApps()).some(({ name }) => name === APP)) return found;
    for (const { id, name, state } of await client.listMachines(APP)) {
      if (name === PARENT || state === "destroyed") continue;
      if (this.#woken.has(name) || state === "destroying") {
        await this.#destroy(client, id);
        continue;
      }
      this.#woken.add(name);
      this.#children.delete(name);
      journal.add({ kind: "wrote", key: child(name), value: null, outcome: "acknowledged" });
      found[child(name)] = await this.#wake(site, id);
      await this.#destroy(client, id);
    }
    for (const { name: template } of await client.listTemplates(APP)) {
      const name = `probe-${this.#next()}`;
      this.#woken.add(name);
      const { id } = await client.createMachine(APP, { template, name, skip_launch: true });
      found[kept(template)] = await this.#wake(site, id);
      await this.#destroy(client, id);
    }
    return found;
  }

  async #make({ client, journal }: Site): Promise<void> {
    const apps = await client.listApps();
    if (!apps.some(({ name }) => name === APP)) await journal.write(`app ${APP}`, "there", () => client.createApp(APP));
    if ((await client.listMachines(APP)).some(({ name }) => name === PARENT)) return;
    const service = { internal_port: 8080, protocol: "http", autostart: false } as const;
    const config = { image: SMALL_APP, guest: { cpus: 1, memory_mb: 128 }, services: [service] };
    await journal.write(`machine ${APP}`, "there", () => client.createMachine(APP, { name: PARENT, config }));
  }

  /** Its nonce is known afterwards, whether it runs or sleeps. Undefined when it does not answer. */
  async #parent(site: Site): Promise<Machine | undefined> {
    const { client } = site;
    await client.waitForMachine(APP, PARENT, { state: "settled", timeout: WAIT_S });
    const parent = await client.getMachine(APP, PARENT);
    if (parent.state === "suspended" && this.#nonce !== "") return parent;
    if (parent.state !== "running") await this.#start(client, parent.id);
    this.#nonce = (await this.#ask(site, parent.id)) ?? "";
    if (this.#nonce === "") return undefined;
    return client.getMachine(APP, PARENT);
  }

  async #step(site: Site, { id, state }: Machine): Promise<void> {
    const { client, journal, random } = site;
    const step = random.pick(STEPS);
    const number = this.#next();
    const order = (what: Order) => journal.add({ kind: "ordered", machine: id, order: what });
    if (step === "fork" || step === "twins") {
      const name = `child-${number}`;
      const names = step === "fork" ? [name] : [`${name}-1`, `${name}-2`];
      let forked: Promise<unknown> | undefined;
      const fork = () => (forked ??= client.forkMachine(APP, id, { name, count: names.length, skip_launch: true }));
      order("fork");
      for (const each of names) await this.#write(site, this.#children, { key: child(each), name: each }, fork);
    }
    if (step === "template") {
      const name = `template-${number}`;
      order("template");
      const keep = () => client.createTemplate(APP, { name, from: id });
      await this.#write(site, this.#templates, { key: kept(name), name }, keep);
    }
    const [template, nonce] = [...this.#templates].at(-1) ?? [];
    if (step === "birth" && template !== undefined) {
      const name = `child-${number}`;
      order("fork");
      const bear = () => client.createMachine(APP, { template, name, skip_launch: true });
      await this.#write(site, this.#children, { key: child(name), name, nonce }, bear);
    }
    if (step === "sleep" && state === "running") {
      order("suspend");
      await outcomeOf(() => client.suspendMachine(APP, id));
    }
    if (step === "wake" && state === "suspended") {
      order("start");
      await this.#start(client, id);
    }
  }

  /** The oldest make room for others. */
  async #makeRoom({ client, journal }: Site): Promise<void> {
    const over = (known: Map<string, string>, most: number) =>
      [...known.keys()].slice(0, Math.max(0, known.size - most));
    for (const name of over(this.#children, MOST_CHILDREN)) {
      this.#children.delete(name);
      await journal.write(child(name), null, () => client.destroyMachine(APP, name, { force: true }));
    }
    for (const name of over(this.#templates, MOST_TEMPLATES)) {
      this.#templates.delete(name);
      await journal.write(kept(name), null, () => client.deleteTemplate(APP, name));
    }
  }

  async #write(
    { journal }: Site,
    known: Map<string, string>,
    { key, name, nonce = this.#nonce }: { key: string; name: string; nonce?: string | undefined },
    request: () => Promise<unknown>,
  ): Promise<void> {
    known.set(name, nonce);
    await journal.write(key, nonce, request);
  }

  /** Returns the nonce of a machine that sleeps and is woken, or why it has another memory. */
  async #wake(site: Site, id: string): Promise<string> {
    for (let start = 0; start < STARTS; start += 1) if ((await this.#start(site.client, id)) === "running") break;
    const { state, state_reason: reason, last_boot: boot } = await site.client.getMachine(APP, id);
    if (state !== "running") return `${state}: ${reason}`;
    if (boot?.kind !== "resume") return `cold: ${boot?.reason}`;
    return (await this.#ask(site, id)) ?? "silent";
  }

  async #start(client: HibernautClient, id: string): Promise<string> {
    await client.startMachine(APP, id);
    return client.waitForMachine(APP, id, { state: "settled", timeout: WAIT_S });
  }

  async #destroy(client: HibernautClient, id: string): Promise<void> {
    // Refused where it is being destroyed already.
    await outcomeOf(() => client.destroyMachine(APP, id, { force: true }));
    await client.waitForMachine(APP, id, { state: "destroyed", timeout: WAIT_S });
  }

  async #ask({ proxyUrl }: Site, machine: string): Promise<string | undefined> {
    const options = { headers: { "hibernaut-machine": machine }, timeoutMs: ANSWER_MS };
    const reply = await ask({ proxyUrl, app: APP }, "/", options).catch(() => undefined);
    return reply?.status === 200 ? counterOf(reply).nonce : undefined;
  }

  #next(): number {
    this.#number += 1;
    return this.#number;
  }
}

/** Whether a machine or a template of the breeder is stored under this key of the journal. */
export function isBirth(key: string): boolean {
  return [child(""), kept("")].some((prefix) => key.startsWith(prefix));
}

function child(name: string): string {
  return `machine ${APP}/${name}`;
}

function kept(name: string): string {
  return `template ${APP}/${name}`;
}
