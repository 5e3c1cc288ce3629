/** Turns faults of the disk into errors that callers understand. */
import { HibernautError } from "@hibernaut/domain/errors";

/** Codes of faults of the disk, as opposed to faulty statements (https://www.sqlite.org/rescode.html). */
const DISK_FAULT = /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN)/;

/** Wraps a repository so that faults of the disk are thrown as `unavailable`. */
export function explainFaults<T extends object>(repository: T): T {
  const methods = Object.entries(repository) as [string, (...args: unknown[]) => unknown][];
  const explaining = methods.map(([name, method]) => [
    name,
    (...args: unknown[]) => {
      try {
        return method(...args);
      } catch (error) {
        throw explain(error);
      }
    },
  ]);
  return Object.fromEntries(explaining) as T;
}

function explain(error: unknown): unknown {
  const { code = "", message = "" } = error as { code?: string; message?: string };
  if (!DISK_FAULT.test(code)) return error;
  const what = `The platform cannot write its database (${message}). Free some disk space and try again.`;
  return new HibernautError("unavailable", what, { cause: code, reason: message }, { cause: error });
}
