/** Which names a machine may ask for, by its own rules. Pure. */
import { type Egress, injectedFor, isNamed } from "@hibernaut/domain/egress";
import type { Answered } from "@hibernaut/network";

/** What the name server knows of machines' rules. */
export interface NamePolicy {
  /** The rules of the machine with this address. Undefined when it has none. */
  rulesOf(machine: string): Egress | undefined;
  /** Lets the machine with these rules reach these addresses. Resolves with false when it may not have them. */
  learn(machine: string, rules: Egress, answers: readonly Answered[]): Promise<boolean>;
  /** Whether an address is outside: not this host's, and not one that no machine may reach. */
  isOutside(address: string): boolean;
  /** Called when a machine asks for a name that it may not reach. */
  onRefused(machine: string, name: string): void;
}

/** For a name server whose machines have no rules. */
export const NO_POLICY: NamePolicy = {
  rulesOf: () => undefined,
  learn: async () => true,
  isOutside: () => false,
  onRefused() {},
};

/**
 * What a machine's rules say of a name. `refuse`: it is told that there is no such name, as any question that is passed on
 * could carry something out. `learn`: it may reach what the answer says, or is led there, where something is added to what it
 * says.
 */
export function judgeName(rules: Egress | undefined, name: string): "answer" | "learn" | "refuse" {
  if (rules === undefined) return "answer";
  if (!rules.closed) return injectedFor(rules, name) === undefined ? "answer" : "learn";
  return isNamed(rules, name) ? "learn" : "refuse";
}

/**
 * Returns the addresses of an answer that a machine may reach because of it. Only those outside, unless the answer is our
 * own: another name server could name this host, or a neighbour of it.
 */
export function reachableIn(
  answers: readonly Answered[],
  { own, isOutside }: { own: boolean } & Pick<NamePolicy, "isOutside">,
): Answered[] {
  return answers.filter(({ address }) => own || isOutside(address));
}
