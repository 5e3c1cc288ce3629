/** The platform's own lines in a machine's log. */
import type { MachineEvent } from "@hibernaut/domain/machine";
import { withoutPeriod } from "@hibernaut/lib/text";
import type { HistoryType } from "../decide/index.ts";

const SENTENCES: Record<HistoryType, string> = {
  carry_over_failed: "The snapshot could not be resumed in this version of QEMU.",
  create: "Machine created.",
  start: "Start requested.",
  suspend: "Suspend requested.",
  stop: "Stop requested.",
  restart: "Restart requested.",
  update: "Update requested.",
  destroy: "Destroy requested.",
  discard_snapshot: "Snapshot discarded.",
  started: "Running.",
  start_failed: "Start failed.",
  start_refused: "Not started.",
  start_hindered: "The host could not start it; trying again.",
  captured: "Suspended.",
  capture_cancelled: "Suspend cancelled; still running.",
  capture_failed: "Suspend failed; still running.",
  halted: "Shut down.",
  halt_failed: "Stop failed.",
  updated: "Update applied.",
  update_failed: "Update failed.",
  removed: "Files deleted.",
  remove_failed: "Files could not be deleted.",
  app_ended: "The app exited.",
  app_restarts: "The app exited and will be restarted.",
  lost: "The virtual machine disappeared.",
  lost_restarts: "The virtual machine disappeared and will be restarted.",
  retry: "Restarting.",
  signal_sent: "A signal was sent to the app.",
  schedule_skipped: "A scheduled run was skipped.",
  not_suspended: "Not suspended; still running.",
  cordoned: "The proxy sends it no requests from now on.",
  evacuated: "Its host was lost, so another one has it now.",
  moved_away: "It is on another host now.",
  moved_in: "It is on this host now.",
  egress_changed: "Where it may connect to has changed.",
  egress_refused: "It was kept from connecting to something by its own rules.",
  lease_taken: "A client has a lease on it.",
  lease_released: "The lease on it was given back.",
  lease_cleared: "The lease on it was ended by someone else.",
  metadata_changed: "Its metadata has changed.",
  kept_ended: "Its virtual machine is no longer kept in memory.",
  restored: "It continues from a template.",
  taken: "It was taken out of the pool of its template.",
  uncordoned: "The proxy sends it requests again.",
  unreachable: "Requests do not reach the app.",
  reachable: "Requests reach the app again.",
  stalled: "The guest is paused.",
  stall_ended: "The guest is running again.",
  reason_ended: "What was shown with its state no longer holds.",
  prewarm_ended: "The prewarm is over.",
};

/**
 * An event as a line: `captured: suspending -> suspended. Suspended.` or, with a reason,
 * `lost: running -> failed. The virtual machine disappeared. Reason: the virtual machine ended.`
 */
export function sentenceOf({ type, from, to, details }: MachineEvent): string {
  const states = from === null || from === to ? to : `${from} -> ${to}`;
  const sentence = withRequester(SENTENCES[type as HistoryType] ?? "", details);
  const sentences = [`${type}: ${states}.`, sentence, ...remarks(details)];
  return sentences.filter((text) => text !== "").join(" ");
}

/** The same as a clause: `the virtual machine disappeared: the virtual machine ended`. */
export function happened({ type, details: { reason } }: MachineEvent): string {
  const sentence = withoutPeriod(SENTENCES[type as HistoryType] ?? type);
  const clause = sentence.charAt(0).toLowerCase() + sentence.slice(1);
  return typeof reason === "string" && reason !== "" ? `${clause}: ${withoutPeriod(reason)}` : clause;
}

/** Who requested it, as `by` in an event's details says. */
const REQUESTERS: Record<string, string> = {
  proxy: "by the proxy",
  itself: "by the machine itself",
  pool: "for the pool of its template",
  schedule: "by its schedule",
  wake: "by the wake it planned",
  drain: "by a drain",
  evacuation: "because its host was lost",
  move: "after a move",
  dispute: "because it is clear again whose it is",
  backup: "by the restore of a backup",
};

/** `Suspend requested by the proxy, after 300.0 s without a request.` */
function withRequester(sentence: string, { by, idle_ms: idleMs, quiet }: Record<string, unknown>): string {
  const requester = REQUESTERS[String(by)];
  if (requester === undefined || !sentence.endsWith(" requested.")) return sentence;
  const what = quiet === true ? "in which nothing passed through its connections" : "without a request";
  const idle = typeof idleMs === "number" ? `, after ${seconds(idleMs)} ${what}` : "";
  return `${sentence.slice(0, -1)} ${requester}${idle}.`;
}

function remarks(details: Record<string, unknown>): string[] {
  const { kind, slept_ms: sleptMs, reason, warning, signal } = details;
  return [
    // How an app ended has the number of a signal, and a sentence with it.
    typeof signal === "string" ? `Signal: ${signal}.` : "",
    kind === "resume" || kind === "warm"
      ? `Resumed${typeof sleptMs === "number" ? ` after ${seconds(sleptMs)} asleep` : ""}.`
      : "",
    kind === "cold" ? "Cold start." : "",
    typeof reason === "string" && reason !== "" ? `Reason: ${reason}.` : "",
    typeof warning === "string" ? `Warning: ${warning}.` : "",
  ];
}

function seconds(milliseconds: number): string {
  return `${(Math.max(0, milliseconds) / 1000).toFixed(1)} s`;
}
