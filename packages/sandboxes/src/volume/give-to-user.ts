/** Volumes that nobody has used yet become those of the user as whom programs of a sandbox run. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { wantedOf } from "@hibernaut/domain/mounts";
import { messageOf } from "@hibernaut/lib/text";
import type { SandboxNeeds } from "../contract.ts";
import { DEFAULT_USER, SandboxGuest } from "../inside/guest.ts";
import { MOST_SAID_BYTES } from "../inside/limits.ts";
import { GIVE_TO_USER } from "./scripts.ts";

/** How long it may take, in milliseconds: a few lines of shell, on a busy host. */
const GIVE_TO_USER_MS = 30_000;

/** The agent has given them to the user of the image, who is another one. Never rejects: the log says why it is not done. */
export async function giveToUser(
  { app, id, config, programs }: Pick<MachineRecord, "app" | "id" | "config" | "programs">,
  { resources, log }: Pick<SandboxNeeds, "resources" | "log">,
): Promise<void> {
  const mounts = config.mounts ?? [];
  if (mounts.length === 0) return;
  const guest = new SandboxGuest((spec) => resources.commands.run(app, id, spec));
  const args = [programs?.user ?? DEFAULT_USER, ...mounts.map(({ path }) => path)];
  try {
    await guest.tell(GIVE_TO_USER, args, { most: MOST_SAID_BYTES, signal: AbortSignal.timeout(GIVE_TO_USER_MS) });
  } catch (error) {
    const details = { machine: id, volumes: mounts.map(wantedOf), reason: messageOf(error) };
    log.warn(details, "new volumes of a sandbox still belong to the user of its image");
  }
}
