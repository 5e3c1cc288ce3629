/** What a database that cannot be written means to those who asked for something. */
import { HibernautError } from "../domain/errors.ts";

/** Faults of the disk below, not of a statement of ours (https://www.sqlite.org/rescode.html). */
const DISK_FAULT = /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN)/;

/** The same repository, its disk faults told as `unavailable`. */
export function tellingFaults<T extends object>(repository: T): T {
  const methods = Object.entries(repository) as [string, (...args: unknown[]) => unknown][];
  const telling = methods.map(([name, method]) => [
    name,
    (...args: unknown[]) => {
      try {
        return method(...args);
      } catch (error) {
        throw explain(error);
      }
    },
  ]);
  return Object.fromEntries(telling) as T;
}

function explain(error: unknown): unknown {
  const { code = "", message = "" } = error as { code?: string; message?: string };
  if (!DISK_FAULT.test(code)) return error;
  const what = `The platform cannot write its database (${message}). Free some disk space and try again.`;
  return new HibernautError("unavailable", what, { cause: code }, { cause: error });
}
