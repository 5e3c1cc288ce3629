/** What the platform writes into a machine's log about its life. */
import type { LifecycleEvent } from "../lifecycle.ts";
import type { MachineEvent } from "../../domain/machine.ts";

const SENTENCES: Record<LifecycleEvent | "create", string> = {
  create: "The machine was made.",
  start: "A start was asked for.",
  suspend: "A suspend was asked for.",
  stop: "A stop was asked for.",
  restart: "A restart was asked for.",
  update: "An update was asked for.",
  destroy: "It is being destroyed.",
  started: "It runs.",
  start_failed: "It could not be started.",
  captured: "It sleeps.",
  capture_cancelled: "The suspend was given up; it goes on.",
  capture_failed: "The suspend failed; it goes on.",
  halted: "It is shut down.",
  halt_failed: "It could not be stopped.",
  updated: "The new version is in force.",
  update_failed: "The update failed.",
  removed: "Its files are gone.",
  remove_failed: "Its files could not be deleted.",
  app_ended: "The app ended.",
  app_restarts: "The app ended and will be started again.",
  lost: "Its virtual machine is gone.",
  lost_restarts: "Its virtual machine is gone; it will be started again.",
  retry: "It is started again.",
};

/**
 * An event as a line: `captured: suspending -> suspended. It sleeps.` or, with a reason,
 * `lost: running -> failed. Its virtual machine is gone. Reason: the virtual machine ended.`
 */
export function sentenceOf({ type, from, to, details }: MachineEvent): string {
  const states = from === null || from === to ? to : `${from} -> ${to}`;
  const sentence = withAsker(SENTENCES[type as LifecycleEvent] ?? "", details);
  const sentences = [`${type}: ${states}.`, sentence, ...remarks(details)];
  return sentences.filter((text) => text !== "").join(" ");
}

/** Who asked, as `by` in an event's details says it. */
const ASKERS: Record<string, string> = { proxy: "by the proxy", itself: "by the machine itself" };

/** `A suspend was asked for by the proxy, after 300.0 s without a request.` */
function withAsker(sentence: string, { by, idle_ms: idleMs }: Record<string, unknown>): string {
  const asker = ASKERS[String(by)];
  if (asker === undefined || !sentence.endsWith(" was asked for.")) return sentence;
  const idle = typeof idleMs === "number" ? `, after ${seconds(idleMs)} without a request` : "";
  return `${sentence.slice(0, -1)} ${asker}${idle}.`;
}

function remarks(details: Record<string, unknown>): string[] {
  const { kind, slept_ms: sleptMs, reason, warning } = details;
  return [
    kind === "resume" ? `Resumed${typeof sleptMs === "number" ? ` after ${seconds(sleptMs)} asleep` : ""}.` : "",
    kind === "cold" ? "Started from scratch." : "",
    typeof reason === "string" && reason !== "" ? `Reason: ${reason}.` : "",
    typeof warning === "string" ? `But ${warning}.` : "",
  ];
}

function seconds(milliseconds: number): string {
  return `${(Math.max(0, milliseconds) / 1000).toFixed(1)} s`;
}
