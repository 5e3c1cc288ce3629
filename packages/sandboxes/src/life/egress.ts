/** Where a sandbox may connect to, from what its client chose to its machine's rules. Pure. */
import { type EgressConfig, egressRefusal } from "@hibernaut/domain/egress";
import { Refusal } from "../failure.ts";
import type { AddedHeaders } from "./rules.ts";

/** What clients choose of where a sandbox may connect to. */
export interface ChosenEgress {
  allowOut?: string[] | undefined;
  denyOut?: string[] | undefined;
  allowInternetAccess?: boolean | undefined;
  /** Opens nothing. */
  added?: AddedHeaders | undefined;
}

/** What clients call everything. */
const EVERYTHING = "0.0.0.0/0";

/**
 * Returns the rules, and undefined when the client chose nothing: then those of the template hold. Throws a {@link Refusal}
 * for what no rule can be.
 */
export function egressOf({ allowOut, denyOut, allowInternetAccess }: ChosenEgress): EgressConfig | undefined {
  if (allowOut === undefined && denyOut === undefined && allowInternetAccess !== false) return undefined;
  const isClosed = allowInternetAccess === false || denyOut?.includes(EVERYTHING) === true;
  const deny = (denyOut ?? []).filter((entry) => entry !== EVERYTHING);
  const config: EgressConfig = {
    ...(isClosed && { default: "deny" as const }),
    ...(allowOut !== undefined && { allow: allowOut }),
    ...(deny.length > 0 && { deny }),
  };
  const refusal = egressRefusal(config);
  if (refusal === undefined) return config;
  const [list, index] = refusal.field.split("[", 2);
  const field = `${list === "allow" ? "allowOut" : "denyOut"}[${index}`;
  // The advice of the rule is for those who write `default`.
  const message = refusal.message.replace("Set `default` to deny", `Add ${EVERYTHING} to \`denyOut\``);
  throw new Refusal(400, `network.${field}: ${message}`);
}
