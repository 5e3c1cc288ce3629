/** Files of this computer that are not the project's: what is in them leaves it nevertheless. */
import { relative } from "node:path";
import type { Findings } from "./findings.ts";
import type { Disk } from "./project.ts";

/**
 * Tells of a file that is read although it is outside of a directory. A path that says so is only worth a note: people see it in
 * the compose file. They do not see a link, which someone else's repository may have where its own configuration seems to be.
 *
 * @param file absolute
 */
export function tellOutside(
  file: string,
  path: string,
  { directory, disk, findings }: { directory: string; disk: Disk; findings: Findings },
): void {
  const real = disk.real(file);
  if (isWithin(real, disk.real(directory))) return;
  const what = "is outside of the project's directory, and a service gets what is in it.";
  if (isWithin(file, directory)) findings.warn(path, `${file} is a link to ${real}, which ${what}`);
  else findings.note(path, `${real} ${what}`);
}

function isWithin(file: string, directory: string): boolean {
  const way = relative(directory, file);
  return way !== ".." && !way.startsWith("../");
}
