/** Why a running machine does not sleep, in the order in which an owner would ask. Pure. */
import type { Activity, AwakeReason } from "@hibernaut/domain/awake";
import { type IdleMachine, neededOf, sharing } from "./idle.ts";
import type { ServicePolicy } from "./service-policy.ts";

/** What is known about the machine, and about the running machines of its app that take part in the rotation. */
export interface AwakeFacts extends Omit<IdleMachine, "policy" | "keptAwake" | "id"> {
  /** Undefined without services. */
  policy: ServicePolicy | undefined;
  cordoned: boolean;
  commands: number;
  /** Of the app's keep-awake lease: how much longer it lasts, and what for. */
  lease: { ms: number; reason: string };
  /** The running machines of the app, this one included. */
  running: readonly IdleMachine[];
}

/** Returns what keeps the machine awake, and when it sleeps. */
export function activityOf(facts: AwakeFacts): Activity {
  const [reason, message, sleepsInMs = null] = reasonOf(facts);
  return {
    open: facts.load,
    commands: facts.commands,
    idleMs: Math.max(0, Math.round(facts.idleMs)),
    reason,
    message,
    sleepsInMs,
  };
}

function reasonOf(facts: AwakeFacts): [AwakeReason, string, (number | null)?] {
  const { policy, load, commands, lease, idleMs, running } = facts;
  if (policy === undefined)
    return [
      "no_service",
      "It has no service. Such a machine sleeps by itself only as a worker, with worker_idle_timeout, in a network of apps on a bridge.",
    ];
  if (policy.autostop === "off") return ["autostop_off", "Its service has autostop off."];
  if (facts.cordoned) return ["cordoned", "It is cordoned, and the proxy leaves it alone."];
  if (!facts.wakeable)
    return [
      "not_connected",
      "Nothing could wake it: it has no service, and no connection to an app of its network that could bring it something to do.",
    ];
  if (load > 0)
    return [
      "open_requests",
      `${count(load, policy.unit === "requests" ? "request" : "connection")} open at the proxy.`,
    ];
  if (commands > 0) return ["commands", `${count(commands, "command")} running in it.`];
  if (lease.ms > 0) {
    const why = lease.reason === "" ? "" : `: ${lease.reason}`;
    return ["keep_awake", `Its app asked to be kept awake for ${seconds(lease.ms)} more${why}.`, lease.ms];
  }
  const left = facts.resting ? 0 : Math.max(0, policy.idleTimeoutMs - idleMs);
  if (left > 0) return ["recently_used", `It was used ${seconds(idleMs)} ago. It sleeps in ${seconds(left)}.`, left];
  // A pinned machine is judged alone.
  const machines = policy.pinned ? [] : sharing(running);
  const least = Math.max(0, ...machines.map((machine) => machine.policy.minRunning));
  if (least > 0 && machines.length <= least)
    return ["min_machines_running", `At least ${least} of its app's machines keep running (min_machines_running).`];
  if (machines.length > 1 && machines.length <= neededOf(machines))
    return [
      "busy_siblings",
      "The other running machines of its app are at their soft limit, and one with room is kept.",
    ];
  return ["due", "Nothing: it sleeps at the next check.", 0];
}

/** `1 request is`, `2 requests are`. */
function count(number: number, noun: string): string {
  return number === 1 ? `1 ${noun} is` : `${number} ${noun}s are`;
}

function seconds(ms: number): string {
  return `${Math.ceil(ms / 1000)} s`;
}
