/** Whose a bridge on this host is. Its name is a hash, so each bridge carries its data folder as a note. */
import { access } from "node:fs/promises";
import { anyTapInUse, listTaps, noteOn } from "./commands.ts";
import { namesFor } from "./names.ts";
import { removeNetwork } from "./remove.ts";

/** The data folder of the platform that a bridge belongs to; undefined for any other interface. */
export async function ownerOf(device: string): Promise<string | undefined> {
  if (device === "") return undefined;
  const folder = await noteOn(device);
  // Anybody may write notes on interfaces; only the right folder has a hash that fits the name.
  return folder !== "" && namesFor(folder).bridge === device ? folder : undefined;
}

/**
 * Removes the network behind a bridge whose platform cannot come back: its data folder is gone, and no guest runs.
 * Whether it did. A platform that is only stopped keeps its network, which its sleeping machines need.
 */
export async function removeAbandoned(device: string | undefined): Promise<boolean> {
  const folder = await ownerOf(device ?? "");
  if (folder === undefined || !(await isGone(folder))) return false;
  const names = namesFor(folder);
  if (await anyTapInUse(await listTaps(names))) return false;
  await removeNetwork(names);
  return true;
}

/** Any other failure than "there is no such folder" may pass, and then its platform starts again. */
function isGone(folder: string): Promise<boolean> {
  return access(folder).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === "ENOENT",
  );
}
