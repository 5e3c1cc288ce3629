/** Random sequences of what users, operators and faults do to three hosts: no machine ever runs twice, and none is lost. */
import { isResting } from "@hibernaut/domain/machine";
import { never } from "@hibernaut/lib/async";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import {
  type ClusterWorld,
  hostChange,
  newClusterWorld,
  type TestHost,
} from "../../../platform/test/helpers/cluster-world.ts";
import { SMALL } from "../../../platform/test/helpers/fake-world.ts";
import { longOr } from "../../../platform/test/helpers/long.ts";
import { KEYS, nameOf, type OwnerRecord } from "../../src/keys.ts";
import { deletion } from "../../src/stored.ts";

const SEQUENCES = longOr(300, 30);
/** Enough to meet a rule that was broken for everyone. */
const FEW = 10;
const HOSTS = ["a", "b", "c"] as const;
const WEIGHTS = {
  create: 3,
  start: 4,
  suspend: 4,
  stop: 1,
  move: 5,
  cold_move: 1,
  destroy: 1,
  restart: 2,
  cut: 2,
  heal: 3,
  power_off: 2,
  power_on: 3,
  evacuate: 3,
  forget: 1,
} as const;
type Act = keyof typeof WEIGHTS;

interface Step {
  act: Act;
  /** The host that is acted on, or through. */
  host: (typeof HOSTS)[number];
  /** Where a machine moves. */
  to: (typeof HOSTS)[number];
  /** Which of the host's machines. */
  pick: number;
  /** Do not wait for it: the next step comes in the middle. */
  hurry: boolean;
}

const anyStep: fc.Arbitrary<Step> = fc.record({
  act: fc.oneof(...Object.entries(WEIGHTS).map(([name, weight]) => ({ weight, arbitrary: fc.constant(name as Act) }))),
  host: fc.constantFrom(...HOSTS),
  to: fc.constantFrom(...HOSTS),
  pick: fc.nat(5),
  hurry: fc.boolean(),
});

/** The three hosts with their faults. */
class Drill {
  readonly world: ClusterWorld;
  readonly #off = new Set<string>();
  readonly #cut = new Set<string>();
  #made = 0;
  /** Whether the directory has lost what it knew: what hosts claim again then may have an older epoch. */
  forgot = false;

  constructor(world: ClusterWorld) {
    this.world = world;
  }

  async act({ act, host: name, to, pick }: Step): Promise<void> {
    const host = this.world.host(name);
    if (act === "power_on") return this.#powerOn(host);
    if (act === "evacuate") return this.#evacuate(host);
    if (act === "forget") return this.#forget();
    if (this.#off.has(name)) return;
    const { machines } = host.platform;
    const all = machines.list("shop").map(({ record }) => record.id);
    const id = all[pick % Math.max(1, all.length)];
    switch (act) {
      case "create":
        await machines.create("shop", { name: `m${(this.#made += 1)}`, config: SMALL });
        return;
      case "restart":
        return host.restart();
      case "cut":
        return this.#cutOff(host);
      case "heal":
        return this.#heal(host);
      case "power_off":
        return this.#powerOff(host);
      default: // what follows needs a machine
    }
    if (id === undefined) return;
    switch (act) {
      case "move":
      case "cold_move":
        return host.moves.source.move(id, { to, cold: act === "cold_move" }, never());
      case "destroy":
        return machines.destroy("shop", id, { force: true });
      case "start":
        return void machines.start("shop", id);
      default:
        return machines[act]("shop", id);
    }
  }

  /** Everything is well again. */
  async mend(): Promise<void> {
    for (const host of this.world.hosts.values()) {
      await this.#heal(host);
      await this.#powerOn(host);
    }
  }

  /** As a host's message says: of a newer and an older copy, the older one is destroyed. */
  async choose(): Promise<void> {
    for (const host of this.world.hosts.values())
      for (const { machine } of host.ownership.disputes.list()) {
        const owner = host.cluster.view.owner(machine);
        if (owner !== undefined)
          this.world.host(owner.host).platform.machines.destroy("shop", machine, { force: true });
      }
  }

  /** The directory loses all machines, while every host is there. */
  async #forget(): Promise<void> {
    if (this.#off.size > 0 || this.#cut.size > 0) return;
    this.forgot = true;
    const kinds = [KEYS.machines, KEYS.names, KEYS.addresses, KEYS.configs, KEYS.moves];
    const { entries } = await this.world.directory.list("/hib/");
    const gone = entries
      .filter(({ key }) => kinds.some((kind) => key.startsWith(kind)))
      .map(({ key }) => deletion(key));
    await this.world.directory.transact([], gone);
  }

  async #cutOff(host: TestHost): Promise<void> {
    this.#cut.add(host.name);
    host.cut(true);
    host.lease.set("grace");
    await this.#tell(host.name, false);
    host.lease.set("lost");
  }

  async #heal(host: TestHost): Promise<void> {
    if (!this.#cut.delete(host.name)) return;
    host.cut(false);
    if (this.#off.has(host.name)) return;
    await this.#tell(host.name, true);
    host.lease.set("live", { anew: true });
  }

  async #powerOff(host: TestHost): Promise<void> {
    this.#off.add(host.name);
    await host.stop();
    for (const process of [...host.world.host.processes.values()]) host.world.host.end(process.ref);
    await this.#tell(host.name, false);
  }

  async #powerOn(host: TestHost): Promise<void> {
    if (!this.#off.has(host.name)) return;
    this.#cut.delete(host.name);
    host.cut(false);
    await this.#tell(host.name, true);
    host.lease.set("live", { anew: true });
    await host.restart();
    this.#off.delete(host.name);
  }

  /** As an operator who knows that the host is off. */
  async #evacuate({ name }: TestHost): Promise<void> {
    const through = HOSTS.find((other) => other !== name && !this.#off.has(other) && !this.#cut.has(other));
    if (this.#off.has(name) && through !== undefined) await this.world.host(through).machines.evacuate(name);
  }

  async #tell(name: string, up: boolean): Promise<void> {
    const revision = (await this.world.directory.transact([], [hostChange(name, up)])) ?? 0;
    for (const other of HOSTS)
      if (!this.#off.has(other) && !this.#cut.has(other)) await this.world.host(other).cluster.view.reached(revision);
  }
}

/** Notes every owner that the directory ever had. */
function follow({ directory }: ClusterWorld): { epochs: Map<string, number[]>; end(): Promise<void> } {
  const epochs = new Map<string, number[]>();
  const closing = new AbortController();
  const watching = (async () => {
    for await (const changes of directory.watch(KEYS.machines, 1, closing.signal))
      for (const { key, value } of changes)
        if (value !== null)
          epochs.set(nameOf(key), [...(epochs.get(nameOf(key)) ?? []), (JSON.parse(value) as OwnerRecord).epoch]);
  })();
  return {
    epochs,
    end: async () => {
      closing.abort();
      await watching.catch(() => {});
    },
  };
}

/** How often a machine got another owner, in all sequences. */
let changedHands = 0;

async function play(steps: Step[]): Promise<void> {
  const world = await newClusterWorld(HOSTS);
  const drill = new Drill(world);
  const noted = follow(world);
  const open: Promise<void>[] = [];
  try {
    for (const host of HOSTS) await drill.act({ act: "create", host, to: host, pick: 0, hurry: false });
    for (const step of steps) {
      // What a fault makes impossible is refused with an error that a user may see; anything else is a fault of ours.
      const done = drill.act(step).catch((error: unknown) => {
        expect(error, JSON.stringify(step)).toMatchObject({
          code: expect.stringMatching(
            /^(failed_precondition|aborted|not_found|unavailable|host_unreachable|moved|already_exists|invalid_argument)$/,
          ),
        });
      });
      // What ends a platform, or waits until all platforms have heard of it, takes its time; the rest may overlap.
      if (step.hurry && !["cut", "heal", "restart", "power_off", "power_on"].includes(step.act)) open.push(done);
      else await done;
    }
    // First: a move whose host was cut off waits until the directory says how it ended.
    await drill.mend();
    await Promise.all(open);
    await vi.waitFor(
      async () => {
        await drill.choose();
        const { entries } = await world.directory.list(KEYS.machines);
        const owners = entries.map(({ key, value }) => `${nameOf(key)} on ${(JSON.parse(value) as OwnerRecord).host}`);
        const here = [...world.hosts.values()].flatMap(({ name, platform }) =>
          platform.machines.list("shop").map(({ record }) => `${record.id} on ${name}`),
        );
        expect(here.toSorted()).toEqual(owners.toSorted());
        expect((await world.directory.list(KEYS.moves)).entries).toEqual([]);
        for (const { platform } of world.hosts.values())
          for (const { record } of platform.machines.list("shop")) expect(isResting(record.state)).toBe(true);
      },
      { timeout: 20_000, interval: 50 },
    );
    expect(world.mostPerMachine, "VMMs of one machine at a time").toBeLessThanOrEqual(1);
    for (const [id, epochs] of drill.forgot ? [] : noted.epochs)
      expect(epochs, `the epochs of ${id}`).toEqual(epochs.toSorted((one, other) => one - other));
    for (const { world: own } of world.hosts.values())
      expect(new Set(own.host.restored).size, "a snapshot ran twice").toBe(own.host.restored.length);
    for (const epochs of noted.epochs.values()) changedHands += epochs.length - 1;
    const names = await world.directory.list(KEYS.names);
    const addresses = await world.directory.list(KEYS.addresses);
    const machines = await world.directory.list(KEYS.machines);
    expect([names.entries.length, addresses.entries.length]).toEqual([
      machines.entries.length,
      machines.entries.length,
    ]);
  } finally {
    await noted.end();
    await world.dispose();
  }
}

async function playMany(sequences: number): Promise<void> {
  await fc.assert(fc.asyncProperty(fc.array(anyStep, { minLength: 4, maxLength: 16 }), play), {
    numRuns: sequences,
    interruptAfterTimeLimit: 560_000,
    markInterruptAsFailure: true,
  });
}

describe("random sequences never run a machine twice, and lose none", () => {
  test(`${FEW}`, () => playMany(FEW));

  test(`${SEQUENCES}, in which machines go from host to host`, { timeout: 600_000, tags: "again" }, async () => {
    changedHands = 0;
    await playMany(SEQUENCES);
    // The sequences only prove something if they did.
    expect(changedHands).toBeGreaterThan(SEQUENCES / 5);
  });
});
