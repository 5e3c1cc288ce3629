/** Pausing a sandbox. A client that is told so relies on it: its memory and files are on the disk, or it hears that they are not. */
import { isHibernautError } from "@hibernaut/domain/errors";
import type { SandboxNeeds } from "../contract.ts";
import { Refusal } from "../failure.ts";
import { PAUSED_TIMEOUT_MS } from "./limits.ts";
import type { SandboxView } from "./view.ts";
import { waitFor } from "./wait.ts";

/** Why a sandbox is stopped with its disk. */
export const FILES_ONLY = "its client keeps the files of this sandbox, and not its memory";

type Machines = Pick<SandboxNeeds["resources"]["machines"], "suspend" | "stopWithLayer" | "wait" | "get">;

/**
 * Suspends a sandbox that runs to a snapshot, or without `memory` stops it with its disk. Rejects with 503 when it runs on and
 * the call may be repeated, with 400 when its machine cannot be suspended, and with 502 when its virtual machine was lost
 * meanwhile. Never with 409, which clients take for "paused already".
 */
export async function pauseRunning(
  machines: Machines,
  { record: { app, id } }: SandboxView,
  memory: boolean,
  signal: AbortSignal,
): Promise<void> {
  try {
    if (memory) machines.suspend(app, id, { reason: "sandbox" });
    else machines.stopWithLayer(app, id, FILES_ONLY);
  } catch (error) {
    if (!isHibernautError(error, "failed_precondition") && !isHibernautError(error, "aborted")) throw error;
    const lasts = machines.get(app, id).record.state === "running";
    throw new Refusal(lasts ? 400 : 503, `Sandbox ${id} was not paused. ${error.message}`);
  }
  // Any state in which nothing is in progress: a guest that is lost does not fall asleep any more.
  const { state } = await waitFor(machines, app, id, ["settled"], { timeoutMs: PAUSED_TIMEOUT_MS, signal });
  if (state === "suspended" || state === "stopped") return;
  const { stateReason } = machines.get(app, id).record;
  const why = stateReason === null ? "" : `: ${stateReason}`;
  if (state === "running") throw new Refusal(503, `Sandbox ${id} was not paused, and runs on${why}.`);
  throw new Refusal(502, `Sandbox ${id} was lost before it was paused, and is ${state}${why}.`);
}
