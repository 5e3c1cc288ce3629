/**
 * Random work with templates on hosts that die and lose the directory: what was made and not deleted is there, what was deleted
 * stays deleted, and the directory says exactly what the hosts have.
 *
 * @module-tag again
 */
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { never } from "@hibernaut/lib/async";
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import type { TestHost } from "../../../platform/test/helpers/cluster-world.ts";
import { longOr } from "../../../platform/test/helpers/long.ts";
import { Mortality } from "../../../platform/test/helpers/mortal.ts";
import { KEYS, type SharedTemplate } from "../../src/keys.ts";
import { fakeHosts, TRIES } from "../fake-hosts.ts";
import { keep, templates } from "./hosts.ts";

const RUNS = longOr(80, 5);
const NAMES = ["ready", "warm"];
/** Where a host dies. */
const STEPS = ["directory.transact", "templates.insert", "templates.remove", "seeds.publish", "seeds.remove"];

const host = fc.nat(2);
const template = fc.nat(3);
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant("make" as const), host, name: fc.constantFrom(...NAMES) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("bring" as const), host, template }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("delete" as const), host, template }) },
  fc.record({
    do: fc.constant("die" as const),
    host,
    at: fc.constantFrom(...STEPS),
    when: fc.constantFrom("before", "after"),
  }),
  fc.record({ do: fc.constant("change" as const), host, to: fc.constantFrom("cut", "connected", "restarted") }),
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

class History {
  readonly #hosts: TestHost[];
  readonly #machines: string[];
  /** That this host's next call of a step kills it. */
  readonly #armed = new Map<TestHost, Mortality>();
  /** By id, what was answered. */
  readonly made = new Set<string>();
  readonly deleted = new Set<string>();
  /** A deletion was asked for, and may have happened or not. */
  readonly doomed = new Set<string>();

  constructor(hosts: TestHost[], machines: string[]) {
    this.#hosts = hosts;
    this.#machines = machines;
  }

  async take(next: Step): Promise<void> {
    const at = this.#hosts[next.host] as TestHost;
    if (next.do === "change" && next.to === "restarted") await this.#restart(at);
    else if (next.do === "change") at.cut(next.to === "cut");
    else if (next.do === "die") {
      await this.#restart(at);
      const mortality = new Mortality();
      await at.restart({ mortality });
      mortality.arm(next.at, next.when);
      this.#armed.set(at, mortality);
    } else await this.#alive(at, () => this.#work(next, at));
  }

  async #work(next: Extract<Step, { do: "make" | "bring" | "delete" }>, at: TestHost): Promise<void> {
    if (next.do === "make") {
      const machine = this.#machines[next.host] ?? "";
      const made = await at.platform.templates.createOf("shop", { machine, name: next.name }, never());
      this.made.add(made.template.id);
      return;
    }
    const id = [...this.made][next.template] ?? "none";
    if (next.do === "delete") this.doomed.add(id);
    const known = at.machines.templates.find("shop", id);
    if (known === undefined) return;
    if (next.do === "bring") return at.machines.templates.bring(known, AbortSignal.timeout(3000));
    await at.machines.templates.delete(known);
    this.deleted.add(id);
  }

  /** What is asked of a host that dies has no answer. */
  async #alive(at: TestHost, work: () => Promise<void>): Promise<void> {
    const mortality = this.#armed.get(at);
    const done = work().catch(() => {});
    await (mortality === undefined ? done : Promise.race([done, mortality.death.promise]));
    if (mortality?.dead === true) await this.#restart(at);
  }

  async #restart(at: TestHost): Promise<void> {
    this.#armed.delete(at);
    await at.restart();
  }

  /** All hosts are up, and connected. */
  async settle(): Promise<void> {
    for (const each of this.#hosts) {
      each.cut(false);
      await this.#restart(each);
    }
  }
}

test(`after ${RUNS} random histories, templates are what was answered, and the directory says where`, async () => {
  const property = fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
    const { world, a, b, c } = await fakeHosts("a", "b", "c");
    const hosts = [a, b, c];
    const machines: string[] = [];
    for (const each of hosts) machines.push((await keep(each, { name: `of-${each.name}`, diskMb: 2 })).machine);
    const history = new History(hosts, machines);
    for (const each of hosts) for (const id of templates(each)) history.made.add(id);
    for (const next of steps) await history.take(next);
    await history.settle();
    await vi.waitFor(async () => {
      const known = (await world.directory.list(KEYS.templates)).entries.map(
        ({ value }) => JSON.parse(value) as SharedTemplate,
      );
      expect(known.filter(({ ended }) => ended)).toEqual([]);
      for (const each of hosts) {
        const said = known.filter((one) => one.hosts.includes(each.name)).map(({ id }) => id);
        expect(templates(each).toSorted(), `host ${each.name}`).toEqual(said.toSorted());
      }
      const names = Object.fromEntries(
        (await world.directory.list(KEYS.templateNames)).entries.map(({ key, value }) => [
          key.slice(KEYS.templateNames.length),
          JSON.parse(value) as string,
        ]),
      );
      expect(names).toEqual(Object.fromEntries(known.map(({ app, name, id }) => [`${app}/${name}`, id])));
    }, TRIES);
    const there = new Set(hosts.flatMap(templates));
    for (const id of history.deleted) expect(there, "what was deleted").not.toContain(id);
    for (const id of history.made)
      if (!history.doomed.has(id)) expect(there, "what was made and never deleted").toContain(id);
    for (const each of hosts) {
      const folder = join(each.world.folder, "templates");
      const found = (await readdir(folder)).filter((name) => !["births", "arriving", "contents"].includes(name));
      expect(found.toSorted()).toEqual(templates(each).toSorted());
      for (const id of templates(each)) expect(existsSync(join(folder, id, "layer.ext4"))).toBe(true);
    }
    for (const each of hosts) await each.stop();
  });
  await fc.assert(property, { numRuns: RUNS, endOnFailure: true });
});
