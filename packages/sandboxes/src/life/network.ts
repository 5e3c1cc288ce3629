/** Where a sandbox may connect to, and what is added to its requests: what its record says of both, and how that changes. */
import { isDeepStrictEqual } from "node:util";
import type { Sandbox, SandboxNetwork } from "@hibernaut/domain/sandbox";
import { addedHeadersOf, sealText } from "@hibernaut/secrets";
import type { SandboxNeeds } from "../contract.ts";
import { type ChosenEgress, egressOf } from "./egress.ts";
import type { AddedHeaders } from "./rules.ts";
import type { SandboxView } from "./view.ts";

/** Returns added headers as records have them: encrypted, for this app alone. Undefined when there are none. */
export function sealedRules(
  app: string,
  added: AddedHeaders | undefined,
  { vault }: Pick<SandboxNeeds, "vault">,
): Pick<SandboxNetwork, "rules"> | undefined {
  if (added === undefined) return undefined;
  const rules: Record<string, string> = {};
  for (const [name, headers] of Object.entries(added))
    rules[name] = sealText(vault, addedHeadersOf(app), JSON.stringify(headers));
  return { rules };
}

interface Changing {
  needs: SandboxNeeds;
  find(id: string): SandboxView | undefined;
  change(sandbox: SandboxView, change: Partial<Sandbox>): void;
}

/**
 * Replaces both, at once, also for connections that are open. If the network cannot keep the rules, the record is as it was, and
 * this rejects with its error.
 */
export async function changeNetwork(
  before: SandboxView,
  chosen: ChosenEgress,
  { needs, find, change }: Changing,
): Promise<void> {
  const { app, id, sandbox } = before.record;
  const egress = egressOf(chosen);
  const { allow_out: _allow, deny_out: _deny, rules: _rules, ...others } = sandbox.network ?? {};
  const { allowOut, denyOut, allowInternetAccess = true, added } = chosen;
  const network = {
    ...others,
    ...(allowOut !== undefined && { allow_out: allowOut }),
    ...(denyOut !== undefined && { deny_out: denyOut }),
    ...sealedRules(app, added, needs),
  };
  // Before the rules, which the network reads together with it.
  change(before, { network, allow_internet_access: allowInternetAccess });
  try {
    await needs.resources.machines.setEgress(app, id, egress ?? null);
  } catch (error) {
    const still = find(id);
    // Another call may have changed it since.
    if (still !== undefined && isDeepStrictEqual(still.record.sandbox.network, network))
      change(still, {
        network: sandbox.network ?? {},
        allow_internet_access: sandbox.allow_internet_access ?? true,
      });
    throw error;
  }
}
