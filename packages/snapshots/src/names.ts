/** How many names a memory file has: everyone who has it has one. */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { ifAbsent } from "@hibernaut/lib/absence";

/** Names of a memory file that a machine has for itself: in its generation, and where its VMM maps it. */
export const OWN_NAMES = 2;

/** Apart from the rules, so that tests can be on another file system. */
export const fileNames = {
  /** Some file systems, such as those of sshfs, make further names and always say that there is one. */
  async count(path: string): Promise<number> {
    return (await stat(path)).nlink;
  },
};

/** Whether others have the memory of a generation that nobody runs, in the directory of that. */
export async function othersHave(folder: string): Promise<boolean> {
  const memory = join(folder, "memory");
  const { ino } = await stat(memory);
  const mapped = await stat(join(folder, "..", "..", "memory")).catch(ifAbsent(undefined));
  return (await fileNames.count(memory)) > (mapped?.ino === ino ? OWN_NAMES : 1);
}
