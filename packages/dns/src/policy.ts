/** Which names a machine may ask for, by its own rules. */
import { type Egress, isNamed } from "@hibernaut/domain/egress";
import { isPublicAddress } from "@hibernaut/lib/public-addresses";
import type { Answered } from "@hibernaut/network";

/** What the name server knows of machines' rules. */
export interface NamePolicy {
  /** The rules of the machine with this address. Undefined when it has none. */
  rulesOf(machine: string): Egress | undefined;
  /** Lets the machine reach these addresses. Resolves with false when it may not reach any more. */
  learn(machine: string, answers: readonly Answered[]): Promise<boolean>;
  /** Called when a machine asks for a name that it may not reach. */
  onRefused(machine: string, name: string): void;
}

/** For a name server whose machines have no rules. */
export const NO_POLICY: NamePolicy = { rulesOf: () => undefined, learn: async () => true, onRefused() {} };

/**
 * What a machine's rules say of a name. `refuse`: it is told that there is no such name, as any question that is passed on
 * could carry something out. `learn`: it may reach what the answer says.
 */
export function judgeName(rules: Egress | undefined, name: string): "answer" | "learn" | "refuse" {
  if (rules === undefined || !rules.closed) return "answer";
  return isNamed(rules, name) ? "learn" : "refuse";
}

/**
 * Returns the addresses of an answer that a machine may reach because of it. Only public ones, unless the answer is our
 * own: another name server could name this host, or a neighbour of it.
 */
export function reachableIn(answers: readonly Answered[], { own }: { own: boolean }): Answered[] {
  return answers.filter(({ address }) => own || isPublicAddress(address));
}
