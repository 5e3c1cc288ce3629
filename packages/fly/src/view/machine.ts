/** A machine, and its history, as Fly's clients see them. Pure. */
import type { MachineState } from "@hibernaut/domain/machine";
import { shown } from "../config/kept.ts";
import { imageRef } from "./image-ref.ts";
import type { PlatformEvent, PlatformMachine } from "./platform.ts";

/** States that have another name there. A machine that is `restarting` is about to start. */
const STATES: Partial<Record<MachineState, string>> = {
  running: "started",
  updating: "replacing",
  restarting: "starting",
};

export function stateOf(state: MachineState): string {
  return STATES[state] ?? state;
}

/** `events` only when the machine is asked for by itself: a list of them all would ask for each. */
export function machineView(machine: PlatformMachine, events?: readonly PlatformEvent[]) {
  const { id, name, state, region, image, cordoned, checks, private_address, nonce } = machine;
  // Who has asked for an update waits for the version that it makes.
  const { version, config } = machine.updating ?? machine;
  return {
    id,
    name,
    state: stateOf(state),
    region,
    instance_id: version,
    version,
    private_ip: private_address,
    image_ref: imageRef(image),
    config: shown(config),
    created_at: machine.created_at,
    updated_at: machine.updated_at,
    checks,
    host_status: machine.host_state === "unreachable" ? "unreachable" : "ok",
    cordoned,
    ...(events !== undefined && { events: eventsView(events) }),
    ...(nonce !== undefined && { nonce }),
  };
}

/** What clients of Fly look for in a history, by what the platform calls it. */
const TYPES: Readonly<Record<string, string>> = {
  create: "launch",
  started: "start",
  app_ended: "exit",
  app_restarts: "exit",
  lost: "exit",
  lost_restarts: "exit",
};
/** What the platform calls a wish, where Fly's name means that it has come true. */
const WISHES: Readonly<Record<string, string>> = { start: "start_requested" };
/** Of the platform's own accord, or because someone asked. */
const OWN = new Set(["proxy", "schedule", "drain", "wake", "pool", "backup"]);

/** Why a machine is halted, whichever was last. */
const ENDINGS = new Set(["app_ended", "stop", "restart", "update", "destroy"]);

/** Newest first, as they come. */
export function eventsView(events: readonly PlatformEvent[]) {
  return events.map((event, at) => {
    const cause = events.slice(at + 1).find(({ type }) => ENDINGS.has(type));
    return eventView(event, cause?.type);
  });
}

function eventView({ at, type, to, details }: PlatformEvent, cause: string | undefined) {
  const timestamp = Date.parse(at);
  const by = String(details["by"] ?? "");
  const isWish = ["create", "start", "stop", "suspend", "restart", "update", "destroy"].includes(type);
  // An app that ended by itself has told so before.
  const isStop = type === "halted" && cause !== "app_ended";
  const known = isStop ? "exit" : (TYPES[type] ?? WISHES[type] ?? type);
  return {
    id: `${timestamp.toString(36)}-${type}`,
    type: known,
    status: stateOf(to),
    source: isWish && !OWN.has(by) ? "user" : "flyd",
    timestamp,
    // Clients read this of every exit, without a look.
    ...(known === "exit" && { request: exitOf({ at, type, details }, isStop) }),
  };
}

function exitOf({ at, type, details }: Pick<PlatformEvent, "at" | "type" | "details">, isStop: boolean) {
  const code = numberIn(details["code"]);
  const signal = numberIn(details["signal"]);
  const restarting = type.endsWith("restarts");
  const exit = {
    exit_code: code,
    guest_exit_code: code,
    guest_signal: signal,
    signal,
    oom_killed: details["oom"] === true,
    requested_stop: isStop,
    restarting,
    exited_at: at,
  };
  return { exit_event: exit, ...(restarting && { restart_count: numberIn(details["attempt"]) }) };
}

function numberIn(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
