/** Which sandbox the files of a volume are reached in. */
import { wantedOf } from "@hibernaut/domain/mounts";
import type { VolumeView } from "@hibernaut/volumes";
import { Refusal } from "../failure.ts";
import type { Sandboxes } from "../life/sandboxes.ts";
import { type SandboxView, stateOf } from "../life/view.ts";

/**
 * Resolves with the sandbox that has the volume, running, and with where it is mounted there. One that is paused is woken if
 * requests may wake it. Rejects with 409, and what to do, when there is none.
 */
export async function holderOf(
  { id, name, machineId }: VolumeView,
  sandboxes: Pick<Sandboxes, "find" | "awake" | "wake">,
  signal: AbortSignal,
): Promise<{ view: SandboxView; root: string }> {
  if (machineId === null)
    throw new Refusal(
      409,
      `No sandbox has volume '${name}'. Its files are reached while one does: make one with \`volumeMounts\`.`,
    );
  const found = sandboxes.find(machineId);
  if (found === undefined)
    throw new Refusal(409, `Volume '${name}' belongs to machine ${machineId}, which is not a sandbox.`);
  const view = await awake(found, name, sandboxes, signal);
  const mount = (view.record.config.mounts ?? []).find((one) => wantedOf(one) === id);
  if (mount === undefined) throw new Refusal(409, `Volume '${name}' has just been taken from its sandbox.`);
  return { view, root: mount.path };
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
