/** How long a sandbox lives, what a machine may connect to, and who alone changes it, in words. Pure. */
import type { Machine } from "@hibernaut/client/browser";
import { moment } from "../../format.ts";

/** Undefined for a machine that is not a sandbox. */
export function sandboxText({ sandbox }: Pick<Machine, "sandbox">): string | undefined {
  if (sandbox === null) return undefined;
  const { template, metadata, on_timeout: end, ends_at: at } = sandbox;
  const labels = Object.entries(metadata).map(([name, value]) => `${name}=${value}`);
  const life = `from template ${template}, ${end === "kill" ? "destroyed" : "paused"} at ${moment(at)}`;
  return [life, ...labels].join(", ");
}

/** Undefined without rules: then the network's own hold alone. */
export function egressText({ config }: Pick<Machine, "config">): string | undefined {
  const egress = config.network?.egress;
  if (egress === undefined) return undefined;
  const { default: byDefault = "allow", allow = [], deny = [] } = egress;
  if (byDefault === "deny") return allow.length === 0 ? "nothing" : `only ${allow.join(", ")}`;
  if (deny.length === 0) return "anything";
  const exceptions = allow.length === 0 ? "" : `, but to ${allow.join(", ")}`;
  return `anything except ${deny.join(", ")}${exceptions}`;
}

/** Why actions are refused. Undefined while everyone may change the machine; `now` in milliseconds since 1970. */
export function leaseText({ lease, machine_id: id, app_name: app }: Machine, now: number): string | undefined {
  // A host that is not updated yet sends none.
  if (!lease || Date.parse(lease.expires_at) <= now) return undefined;
  const what = lease.description === "" ? "" : ` (${lease.description})`;
  const clear = `\`hibernaut machine lease clear ${id} --app ${app}\``;
  return `Token ${lease.owner} has a lease on it${what} until ${moment(lease.expires_at)}, so nobody else changes it: actions are refused. If its client is gone, ${clear} ends the lease.`;
}
