/** Keeps the rules of machines for what they connect to: what they are, what names they may reach, what they were refused. */
import type { Egress } from "@hibernaut/domain/egress";
import { HibernautError } from "@hibernaut/domain/errors";
import type { Subnet } from "@hibernaut/lib/ipv4";
import type { Answered, Doors, NetworkMachine, Refused } from "../../contract.ts";
import { acceptsRuleset, listSet, nft } from "../commands.ts";
import type { Names } from "../names.ts";
import { machineHost } from "../subnet.ts";
import { LearntAddresses, learning } from "./learnt.ts";
import { NewlyRefused, parseRefused } from "./refused.ts";
import { egressRuleset, forgetting, type Governed, type Home, homesText, REFUSED_SET } from "./rules.ts";

/** A ruleset that loads only where the kernel knows sets of pairs with networks (since 5.6). For a check, not to be loaded. */
const PROBE = `table inet hibernaut_probe {
  set pairs { type ipv4_addr . ipv4_addr; flags interval; elements = { 192.0.2.1 . 0.0.0.0/0 } }
}`;

const FAMILIES = ["inet", "bridge"] as const;

export class EgressKeeper {
  readonly #names: Names;
  readonly #subnet: Subnet;
  readonly #machines: ReadonlyMap<string, NetworkMachine>;
  readonly #learnt = new LearntAddresses();
  readonly #newly = { inet: new NewlyRefused(), bridge: new NewlyRefused() };
  /** Where the host judges by names. */
  doors: Doors = { dns: false };
  /** Called when a machine has other rules, or is gone. */
  onChanged: (machine: NetworkMachine) => void = () => {};
  /** What nft is doing to open addresses, by machine. */
  readonly #learning = new Map<string, Promise<void>>();
  /** The text that the kernel has, if nothing has happened to it. */
  #applied: string | undefined;
  #isPossible: boolean | undefined;
  /** What the kernel still has to forget. At first, what an earlier platform process let machines learn. */
  #forgotten: string[] | "all" = "all";

  constructor(names: Names, subnet: Subnet, machines: ReadonlyMap<string, NetworkMachine>) {
    this.#names = names;
    this.#subnet = subnet;
    this.#machines = machines;
  }

  /** Throws `failed_precondition` when there are rules and this host's kernel cannot keep them. */
  async require(egress: Egress | undefined): Promise<void> {
    if (egress === undefined) return;
    this.#isPossible ??= await acceptsRuleset(PROBE);
    if (this.#isPossible) return;
    throw new HibernautError(
      "failed_precondition",
      "This host's kernel cannot keep rules for where machines connect to (network.egress): it has no nftables sets of pairs with networks, which came with Linux 5.6. Use a newer kernel, or remove the rules.",
    );
  }

  /** Makes the kernel keep them, and `others`, in one step. */
  async apply(others: string, homes: readonly Home[]): Promise<void> {
    const [names, subnet, doors, forgotten] = [this.#names, this.#subnet, this.doors, this.#forgotten];
    const machines = this.#governed();
    const text = egressRuleset({ names, subnet, machines, doors });
    this.#forgotten = [];
    // Filling the sets takes long where there are many rules, and most changes are not about any.
    const mine = text === this.#applied ? "" : text;
    this.#applied = undefined;
    try {
      const kept = machines.length === 0 ? "" : `${homesText(names, homes)}${forgetting({ names, forgotten })}`;
      await nft(`${others}${mine}${kept}`);
      this.#applied = text;
    } catch (error) {
      // At most what one machine learns is added meanwhile, and that is forgotten with the rest.
      this.#forgotten = "all";
      this.#learnt.clear();
      throw error;
    }
  }

  /** A machine has other rules now, or is gone: the names that it could reach count no longer. */
  changed(before: NetworkMachine | undefined, after: NetworkMachine | undefined): void {
    if (before === undefined) return;
    this.#forget(before.address);
    const { id, app, address } = before;
    this.onChanged(after ?? { id, app, address });
  }

  #forget(machine: string): void {
    const elements = this.#learnt.forget(machine);
    if (this.#forgotten !== "all") this.#forgotten.push(...elements);
  }

  /** The tables that exist while any machine has rules. */
  tables(): string[] {
    return this.#governed().length === 0 ? [] : FAMILIES.map((family) => `${family} ${this.#names.egressTable}`);
  }

  /** The machine with this address. */
  machineAt(address: string): NetworkMachine | undefined {
    for (const machine of this.#machines.values()) if (machine.address === address) return machine;
    return undefined;
  }

  /** Opens the addresses of a name to the machine with this address and these rules. Returns false when it may not have them. */
  async learn(machine: string, rules: Egress, answers: readonly Answered[]): Promise<boolean> {
    const isStill = () => this.machineAt(machine)?.egress === rules;
    if (!isStill()) return false;
    const lines = this.#learnt.note(machine, answers, performance.now());
    if (lines === undefined) return false;
    // What another question of the machine opens may be what this one needs.
    const before = this.#learning.get(machine) ?? Promise.resolve();
    if (lines.length === 0) {
      await before;
      return isStill();
    }
    const work = before.catch(() => {}).then(() => nft(learning(this.#names, this.#subnet, lines)));
    this.#learning.set(machine, work);
    try {
      await work;
    } catch (error) {
      this.#forget(machine);
      throw error;
    } finally {
      if (this.#learning.get(machine) === work) this.#learning.delete(machine);
    }
    if (isStill()) return true;
    // The rules changed meanwhile, and what they forgot may have come again.
    const stillThere = lines.map((line) => line.replace(/ timeout .*/, ""));
    await nft(forgetting({ names: this.#names, forgotten: [...this.#learnt.forget(machine), ...stillThere] }));
    return false;
  }

  /** The kernel may have lost what it had. */
  forgotten(): void {
    this.#learnt.clear();
    this.#forgotten = "all";
    this.#applied = undefined;
  }

  /** Returns what machines were kept from since the last call. */
  async refused(): Promise<Refused[]> {
    if (this.tables().length === 0) return [];
    const lists = await Promise.all(
      FAMILIES.map(async (family) =>
        this.#newly[family].in(parseRefused(await listSet(family, this.#names.egressTable, REFUSED_SET))),
      ),
    );
    return lists.flat().flatMap(({ machine, ...destination }) => {
      const id = this.machineAt(machine)?.id;
      return id === undefined ? [] : [{ machineId: id, ...destination }];
    });
  }

  #governed(): Governed[] {
    return [...this.#machines.values()].flatMap(({ address, egress }) =>
      egress === undefined || machineHost(this.#subnet, address) === undefined ? [] : [{ address, egress }],
    );
  }
}
