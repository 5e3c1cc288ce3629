/** Which machines a deploy from the dashboard changes, and in which order. Pure. */
import type { Machine, MachineState } from "@hibernaut/client/browser";

/** The metadata key in which a deploy from an app file names a machine's process group. */
const GROUP_METADATA = "hibernaut_process_group";
/** The metadata key of the temporary machine that runs a release command. */
const RELEASE_METADATA = "hibernaut_release_command";

/** States of machines that run, or that an update starts. */
const UP: ReadonlySet<MachineState> = new Set(["running", "starting", "restarting", "updating", "failed"]);

/** The process group of a machine; empty without one. */
export function groupOf({ config }: Pick<Machine, "config">): string {
  return config.metadata?.[GROUP_METADATA] ?? "";
}

/** Whether an update starts the machine. */
export function isUp({ state, crash }: Pick<Machine, "state" | "crash">): boolean {
  return UP.has(state) || (state === "stopped" && crash !== null);
}

/**
 * The machines that a deploy gives another image: those of the app's process groups, like a deploy from an app file, or
 * all if none is in a group. Those of hosts that cannot be asked are left out. Those that run come first, because they show
 * whether the new version works.
 */
export function deployTargets(machines: readonly Machine[]): Machine[] {
  const lasting = machines.filter(
    ({ config, state, host_state: host }) =>
      config.metadata?.[RELEASE_METADATA] === undefined && !isGoing(state) && host !== "unreachable",
  );
  const grouped = lasting.filter((machine) => groupOf(machine) !== "");
  return inOrder(grouped.length > 0 ? grouped : lasting);
}

/** Machines that run first, then by name. */
export function inOrder(machines: readonly Machine[]): Machine[] {
  return machines.toSorted(
    (a, b) => Number(isUp(b)) - Number(isUp(a)) || a.name.localeCompare(b.name, undefined, { numeric: true }),
  );
}

function isGoing(state: MachineState): boolean {
  return state === "destroying" || state === "destroyed";
}
