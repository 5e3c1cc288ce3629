/** What becomes of the targets for backups of a platform that was restored. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ifAbsent } from "@hibernaut/lib/absence";

/** A copy of a platform must not delete at targets what the original counts on. */
export async function leaveTargets(directory: string): Promise<void> {
  const { asRestored, TARGETS_FILE } = await import("@hibernaut/backup/restore");
  const file = join(directory, TARGETS_FILE);
  const text = await readFile(file, "utf8").catch(ifAbsent(undefined));
  if (text !== undefined) await writeFile(file, asRestored(text), { mode: 0o600 });
}
