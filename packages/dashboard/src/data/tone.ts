/** How machines look and count, by what is known of them. Pure. */
import type { Machine } from "@hibernaut/client/browser";
import { type SpanState, warmUntil } from "./track.ts";

const MB = 1024 * 1024;
const DEFAULT_MB = 256;

/** The looks. `busy` is on the way from one state to another. */
export type Tone = SpanState | "busy";

/** Whether the machine's host cannot be asked, so that only its last published state is known. */
export function isUnreachable({ host_state: host }: Pick<Machine, "host_state">): boolean {
  return host === "unreachable";
}

/** Returns how a machine looks. Whatever it was doing, one that nobody reaches does not work. */
export function toneOf(machine: Pick<Machine, "state" | "snapshot" | "host_state">): Tone {
  if (isUnreachable(machine)) return "failed";
  switch (machine.state) {
    case "running":
      return "running";
    case "suspended":
      return warmUntil(machine) === undefined ? "suspended" : "warm";
    case "failed":
      return "failed";
    case "created":
    case "stopped":
    case "destroyed":
      return "stopped";
    case "starting":
    case "restarting":
    case "suspending":
    case "stopping":
    case "updating":
    case "destroying":
      return "busy";
  }
}

/** What a machine's state is called on screen. */
export function stateLabel(machine: Pick<Machine, "state" | "snapshot" | "host_state">): string {
  if (isUnreachable(machine)) return `unreachable, was ${machine.state}`;
  return warmUntil(machine) === undefined ? machine.state : "suspended, warm";
}

/**
 * Memory of machines in bytes: all of it, and that of machines that sleep without a process. Those that cannot be asked are
 * left out. Pure.
 */
export function sleepingMemory(machines: Iterable<Machine>): { all: number; asleep: number } {
  let all = 0;
  let asleep = 0;
  for (const machine of machines) {
    if (isUnreachable(machine)) continue;
    const size = (machine.config.guest?.memory_mb ?? DEFAULT_MB) * MB;
    const tone = toneOf(machine);
    all += size;
    if (tone === "suspended" || tone === "stopped" || tone === "failed") asleep += size;
  }
  return { all, asleep };
}
