/** Keeps the rules of machines for what they connect to: what they are, what names they may reach, what they were refused. */
import type { Egress } from "@hibernaut/domain/egress";
import { HibernautError } from "@hibernaut/domain/errors";
import type { Subnet } from "@hibernaut/lib/ipv4";
import type { Answered, GatePorts, NetworkMachine, Refused } from "../../contract.ts";
import { acceptsRuleset, listSet, nft } from "../commands.ts";
import type { Names } from "../names.ts";
import { machineHost } from "../subnet.ts";
import { LearntAddresses, learning } from "./learnt.ts";
import { NewlyRefused, parseRefused } from "./refused.ts";
import { egressRuleset, forgetting, type Governed, REFUSED_SET } from "./rules.ts";

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
  /** Where connections are judged by their names. */
  gate: GatePorts | undefined;
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
  async apply(others: string): Promise<void> {
    const [names, subnet, gate, forgotten] = [this.#names, this.#subnet, this.gate, this.#forgotten];
    this.#forgotten = [];
    try {
      await nft(`${others}${egressRuleset({ names, subnet, machines: this.#governed(), gate, forgotten })}`);
    } catch (error) {
      // At most what one machine learns is added meanwhile, and that is forgotten with the rest.
      this.#forgotten = "all";
      this.#learnt.clear();
      throw error;
    }
  }

  /** A machine has other rules now, or is gone: the names that it could reach count no longer. */
  changed(machine: string): void {
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

  /** Opens the addresses of a name to the machine with this address. Returns false when it has too many. */
  async learn(machine: string, answers: readonly Answered[]): Promise<boolean> {
    const rules = this.machineAt(machine)?.egress;
    if (rules === undefined) return true;
    const lines = this.#learnt.note(machine, answers, Date.now());
    if (lines === undefined) return false;
    if (lines.length === 0) return true;
    try {
      await nft(learning(this.#names, this.#subnet, lines));
    } catch (error) {
      this.changed(machine);
      throw error;
    }
    if (this.machineAt(machine)?.egress === rules) return true;
    // The rules changed meanwhile, and what they forgot may have come again.
    const forgotten = this.#learnt.forget(machine);
    const stillThere = lines.map((line) => line.replace(/ timeout .*/, ""));
    await nft(forgetting({ names: this.#names, forgotten: [...new Set([...forgotten, ...stillThere])] }));
    return false;
  }

  /** The kernel has lost the sets. */
  forgotten(): void {
    this.#learnt.clear();
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
