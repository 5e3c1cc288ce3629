/** What to do when the disk refuses what a build writes or reads. Pure. */
import { CliError } from "../failure.ts";

/** The error that users see for one of the file system; any other error as it is. `builds` is the directory for builds. */
export function explained(error: unknown, builds: string): unknown {
  const { code, path } = error as NodeJS.ErrnoException;
  const what = path ?? builds;
  if (code === "ENOSPC" || code === "EDQUOT")
    return new CliError(
      "resource_exhausted",
      `There is no room for the build in ${builds}. Free some, or set HIBERNAUT_BUILD_DIR to a directory on another disk.`,
    );
  if ((code === "EACCES" || code === "EPERM" || code === "EROFS") && what.startsWith(builds))
    return new CliError(
      "permission_denied",
      `${what} cannot be written (${code}). Set HIBERNAUT_BUILD_DIR to a directory that belongs to you.`,
    );
  if (code === "EACCES" || code === "EPERM")
    return new CliError(
      "permission_denied",
      `${what} cannot be read (${code}). Make it readable, or list it in .dockerignore if the app does not need it.`,
    );
  return error;
}
