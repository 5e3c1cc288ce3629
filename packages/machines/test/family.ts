/** A family of machines on a fake host: machines, those that are born from them, and what each of them remembers. */
import { join } from "node:path";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { expect, vi } from "vitest";
import { type FakePlatform, SMALL, startPlatform, type World } from "../../platform/test/helpers/fake-world.ts";
import type { PoolView } from "../src/births/pools.ts";
import type { MachineView } from "../src/view.ts";
import { beingBorn } from "./leftovers.ts";
import { type Memory, memoryIn, memoryOf, Watch } from "./memories.ts";

/** Only a fault reaches it. */
const TIMEOUT = { timeoutMs: 10_000 };
/** Why something is refused that comes at the wrong moment. */
const REFUSALS = /^(failed_precondition|aborted|not_found|already_exists)$/;
/** Why a machine may have lost its memory. */
const HONEST_REASONS = /^(first_start|stopped|vmm_lost)$/;

const isKnown = ({ pooled }: MachineRecord) => pooled !== true;
const isFull = ({ size, ready, reason }: PoolView) => ready === size && reason === null;

export class Family {
  readonly #world: World;
  #platform!: FakePlatform;
  #patience = new AbortController();
  readonly #machines: string[] = [];
  /** What each template remembers, by its id. */
  readonly #templates = new Map<string, Memory>();
  /** One for each birth in progress. */
  readonly #watches = new Set<Watch>();
  readonly #pending = new Set<Promise<void>>();
  readonly #faults: unknown[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  get platform(): FakePlatform {
    return this.#platform;
  }

  /** Starts the next platform. The first one gets a machine, with which everything begins, and a template of that. */
  async open(): Promise<void> {
    this.#platform = await startPlatform(this.#world, { settings: { keepWarmS: 0 } });
    if (this.#machines.length > 0) return;
    this.#platform.apps.create("shop");
    const { record } = await this.#platform.machines.create("shop", { config: SMALL });
    this.#machines.push(record.id);
    await this.#platform.machines.wait("shop", record.id, ["running"], TIMEOUT);
    this.keep(record.id, {});
    await this.rest();
  }

  /** Ends the platform gracefully: its clients are gone by then. */
  async close(): Promise<void> {
    this.giveUp();
    await Promise.all(this.#pending);
    await this.#platform.close();
  }

  /** The machine, or the template, that a number stands for. */
  machine(number: number): string {
    return this.#machines[number % this.#machines.length] ?? "";
  }

  template(number: number): string {
    return [...this.#templates.keys()][number % this.#templates.size] ?? "none";
  }

  fork(parent: string, births: { count: number; name?: string; skipLaunch: boolean }): void {
    this.#begin(parent, (signal) => this.#platform.forks.fork("shop", parent, births, signal), this.#born);
  }

  keep(parent: string, named: { name?: string }): void {
    const keep = (signal: AbortSignal) =>
      this.#platform.templates.createOf("shop", { machine: parent, ...named }, signal);
    this.#begin(parent, keep, ({ template: { id, machine } }, memories) => {
      const memory = memoryIn(join(this.#world.folder, "templates", id), machine);
      expect(memories).toContainEqual(memory);
      this.#templates.set(id, memory);
    });
  }

  bear(template: string, named: { name?: string }): void {
    const memory = this.#templates.get(template);
    const bear = async (signal: AbortSignal) => [await this.#platform.templates.bear("shop", template, named, signal)];
    this.#begin(template, bear, (born) => this.#born(born, [memory]));
  }

  forget(template: string): void {
    const forget = () => this.#platform.templates.delete("shop", template);
    this.#begin(template, forget, () => this.#templates.delete(template));
  }

  /** From then on, some of those who are born from the template were made in advance. */
  pool(template: string, size: number): Promise<void> {
    return this.try(() => this.#platform.templates.setPool("shop", template, size));
  }

  restore(machine: string, template: string, skipLaunch: boolean): void {
    const memory = this.#templates.get(template);
    const restore = (signal: AbortSignal) =>
      this.#platform.restores.restore("shop", machine, { template, skipLaunch }, signal);
    this.#begin(machine, restore, ({ record: { id } }) => {
      for (const watch of this.#watches) watch.look();
      expect(memoryOf(this.#platform.machines.get("shop", id).record, this.#world)).toEqual(memory);
    });
  }

  /** Nobody waits for births any more. */
  giveUp(): void {
    this.#patience.abort();
    this.#patience = new AbortController();
  }

  /** Does something that may be refused. What a parent remembers right after it may be gone again when its copy is there. */
  async try(work: () => unknown): Promise<void> {
    const look = () => {
      for (const watch of this.#watches) watch.look();
    };
    look();
    await this.#allowed(async () => {
      const done = work();
      look();
      return done;
    });
  }

  /** Resolves when no birth is in progress and every machine rests. Rejects with what went wrong so far. */
  async rest(): Promise<void> {
    await Promise.all(this.#pending);
    for (const { id } of this.#world.store.templates.list())
      await vi.waitFor(
        () => expect(isFull(this.#platform.templates.get("shop", id).pool)).toBe(true),
        TIMEOUT.timeoutMs,
      );
    for (const { id } of this.#world.store.machines.list().filter(isKnown)) {
      await this.#platform.machines.wait("shop", id, ["settled", "destroyed"], TIMEOUT);
      const { lastBoot } = this.#platform.machines.get("shop", id).record;
      if (lastBoot?.kind === "cold") expect(lastBoot.reason).toMatch(HONEST_REASONS);
    }
    // Nobody waits for those that leave a pool which has become smaller, also before they were born.
    await vi.waitFor(() => {
      expect(beingBorn(this.#world)).toEqual([]);
      const leaving = this.#world.store.machines.list().filter(({ state }) => state === "destroying");
      expect(leaving).toEqual([]);
    }, TIMEOUT.timeoutMs);
    if (this.#faults.length > 0) throw this.#faults[0];
  }

  /** Wakes every machine. Each is itself, is not frozen, and remembers what it did when it rested. */
  async wakeAll(): Promise<void> {
    const records = this.#world.store.machines.list();
    for (const key of ["id", "name", "address"] as const)
      expect(new Set(records.map((record) => record[key])).size, `each has its own ${key}`).toBe(records.length);
    for (const { id } of records.filter(isKnown)) {
      const record = this.#platform.machines.get("shop", id).record;
      expect(this.#machines, "nobody is there who was not announced").toContain(id);
      const memory = memoryOf(record, this.#world);
      if (record.state !== "running") this.#platform.machines.start("shop", id);
      await this.#platform.machines.wait("shop", id, ["running"], TIMEOUT);
      const guest = this.#world.host.guest(id);
      expect(guest).toMatchObject({ foreign: false, quiet: false, state: { hostname: id } });
      const answer = guest?.request();
      expect(answer?.count).toBe((memory?.count ?? 0) + 1);
      if (memory !== undefined) expect(answer?.nonce).toBe(memory.nonce);
    }
  }

  /** Begins something that takes its time. `done` gets what the parent has remembered meanwhile. */
  #begin<T>(
    parent: string,
    work: (signal: AbortSignal) => Promise<T>,
    done: (result: T, memories: Memory[]) => void,
  ): void {
    const watch = new Watch(parent, this.#world);
    this.#watches.add(watch);
    const { signal } = this.#patience;
    const all = async () => {
      const result = await this.#allowed(() => work(signal), signal);
      watch.look();
      this.#watches.delete(watch);
      if (result !== undefined) done(result.value, watch.memories);
    };
    const pending = all()
      .catch((error: unknown) => void this.#faults.push(error))
      .finally(() => this.#pending.delete(pending));
    this.#pending.add(pending);
  }

  readonly #born = (born: MachineView[], memories: Memory[]): void => {
    for (const { record } of born) {
      this.#machines.push(record.id);
      expect(memories).toContainEqual(memoryOf(this.#platform.machines.get("shop", record.id).record, this.#world));
    }
  };

  async #allowed<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<{ value: T } | undefined> {
    try {
      return { value: await work() };
    } catch (error) {
      if (signal?.aborted !== true || error !== signal.reason)
        expect(error).toMatchObject({ code: expect.stringMatching(REFUSALS) });
      return undefined;
    }
  }
}
