/** Opens a volume where its files are reached: in the sandbox that has it, or else in an opener, a machine of the platform's own. */
import { wantedOf } from "@hibernaut/domain/mounts";
import type { VolumeView } from "@hibernaut/volumes";
import { Refusal } from "../failure.ts";
import type { Guests } from "../inside/guests.ts";
import type { Sandboxes } from "../life/sandboxes.ts";
import { type SandboxView, stateOf } from "../life/view.ts";
import type { Openers, OpenVolume } from "./openers.ts";

interface Places {
  sandboxes: Pick<Sandboxes, "find" | "awake" | "wake">;
  guests: Pick<Guests, "of">;
  openers: Pick<Openers, "has" | "open">;
}

/**
 * Resolves with the guest that has the volume, and with where it is mounted there. A sandbox that is paused is woken if
 * requests may wake it. Rejects with 409, and what to do, when the volume is where its files cannot be reached.
 */
export async function openVolume(
  volume: VolumeView,
  { sandboxes, guests, openers }: Places,
  signal: AbortSignal,
): Promise<OpenVolume> {
  const { id, name, machineId } = volume;
  if (machineId === null || openers.has(id)) return openers.open(volume, signal);
  const found = sandboxes.find(machineId);
  if (found === undefined)
    throw new Refusal(409, `Volume '${name}' belongs to machine ${machineId}, which is not a sandbox.`);
  const view = await awake(found, name, sandboxes, signal);
  const mount = (view.record.config.mounts ?? []).find((one) => wantedOf(one) === id);
  if (mount === undefined) throw new Refusal(409, `Volume '${name}' has just been taken from its sandbox.`);
  return { guest: guests.of(view), root: mount.path, [Symbol.dispose]: () => {} };
}

function awake(
  view: SandboxView,
  name: string,
  sandboxes: Pick<Sandboxes, "awake" | "wake">,
  signal: AbortSignal,
): SandboxView | Promise<SandboxView> {
  const { app, id, state, sandbox } = view.record;
  if (state === "running") return view;
  if (stateOf(view) === "running") return sandboxes.awake(app, id, signal);
  if (sandbox.auto_resume && sandbox.keep_memory !== false) return sandboxes.wake(view, signal);
  throw new Refusal(
    409,
    `Sandbox ${id} has volume '${name}', and is paused. Resume it with \`connect\`, or make it with \`autoResume\`.`,
  );
}
