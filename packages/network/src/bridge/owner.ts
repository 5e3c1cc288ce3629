/** Finds out which platform a bridge belongs to. The bridge's name is a hash, so a note on it names the data directory. */
import { access } from "node:fs/promises";
import { anyTapInUse, listTaps, noteOn } from "./commands.ts";
import { namesFor } from "./names.ts";
import { removeNetwork } from "./remove.ts";

/** Returns the data directory of the platform that a bridge belongs to. Undefined for any other interface. */
export async function ownerOf(device: string): Promise<string | undefined> {
  if (device === "") return undefined;
  const folder = await noteOn(device);
  // Any program may write notes on interfaces, but only the right directory has the hash in the name.
  return folder !== "" && namesFor(folder).bridge === device ? folder : undefined;
}

/**
 * Removes the network of a bridge whose platform cannot return: its data directory no longer exists, and no guest is
 * running. Returns whether it did. A platform that is only stopped keeps its network for its sleeping machines.
 */
export async function removeAbandoned(device: string | undefined): Promise<boolean> {
  const folder = await ownerOf(device ?? "");
  if (folder === undefined || !(await isGone(folder))) return false;
  const names = namesFor(folder);
  if (await anyTapInUse(await listTaps(names))) return false;
  await removeNetwork(names);
  return true;
}

/** Whether the directory does not exist. Any other failure may be temporary, and the platform may start again. */
function isGone(folder: string): Promise<boolean> {
  return access(folder).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === "ENOENT",
  );
}
