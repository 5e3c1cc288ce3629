/**
 * "Unknown" is not "absent". Asked about a file, a process or a socket, the host answers with an error when it is not there,
 * and also when it cannot tell: it has no descriptor left (EMFILE), no memory (ENOMEM), or its disk does not answer (EIO).
 * Only the errors named here mean absence. Any other one is passed on, or asked about again.
 */
import { accessSync } from "node:fs";
import { access } from "node:fs/promises";

/** Nothing is at that path, or it leads through something other than a directory. */
const NO_FILE: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR"]);
/** A process that is not there has no directory in /proc, or one that went away while it was read. */
const NO_PROCESS: ReadonlySet<string> = new Set(["ENOENT", "ESRCH"]);
/** Nobody listens on a socket: it does not exist, or the process that made it is gone. */
const NO_LISTENER: ReadonlySet<string> = new Set(["ENOENT", "ECONNREFUSED"]);
const BUSY = "Try again when the host is less busy.";
const NO_DESCRIPTOR =
  "The host or the platform has no file descriptor left: see what holds them, or raise LimitNOFILE.";
const NO_SPACE = "Free some disk space.";
const NO_RIGHT = "Let the platform's user read and write that.";
/** The host cannot do or tell anything at the moment, whatever it was asked about: it will when it is less busy. */
const PASSING: Readonly<Record<string, string>> = {
  EMFILE: NO_DESCRIPTOR,
  ENFILE: NO_DESCRIPTOR,
  ENOMEM: "The host is short of memory.",
  ENOBUFS: "The host is short of memory.",
  EAGAIN: BUSY,
  EINTR: BUSY,
  ETIMEDOUT: BUSY,
};
/** It will when someone has done something about it. */
const LASTING: Readonly<Record<string, string>> = {
  EIO: "Look at the host's disks and the output of dmesg.",
  EACCES: NO_RIGHT,
  EPERM: NO_RIGHT,
  EROFS: NO_RIGHT,
  EBUSY: "See what uses it.",
  ENOSPC: NO_SPACE,
  EDQUOT: NO_SPACE,
};
/** A name of errno(3), as opposed to the codes of other errors. */
const ERRNO = /^E[A-Z0-9]+$/;

/** The code of the system's error, also where another error was caused by it; "" for any other error. */
function codeOf(error: unknown): string {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  if (typeof code === "string" && ERRNO.test(code)) return code;
  return cause === undefined ? "" : codeOf(cause);
}

/** Whether a call failed because nothing is at the path that it names. */
export function isAbsent(error: unknown): boolean {
  return NO_FILE.has(codeOf(error));
}

/** Whether a call failed because nobody listens on the socket that it names. */
export function isUnheard(error: unknown): boolean {
  return NO_LISTENER.has(codeOf(error));
}

/** Whether a call failed for a reason of the host, which says nothing about what it was asked about. */
export function isHostTrouble(error: unknown): boolean {
  return adviceFor(error) !== undefined;
}

/** Whether that reason passes by itself. */
export function isPassing(error: unknown): boolean {
  return codeOf(error) in PASSING;
}

/** What to do about a reason of the host, as a sentence. Undefined for any other reason. */
export function adviceFor(error: unknown): string | undefined {
  return PASSING[codeOf(error)] ?? LASTING[codeOf(error)];
}

/**
 * Handles the error of a call that needs a file: returns `absent` when there is none, and throws anything else.
 *
 * @example
 * const text = await readFile(path, "utf8").catch(ifAbsent(undefined));
 */
export function ifAbsent<Absent>(absent: Absent): (error: unknown) => Absent {
  return unless(NO_FILE, absent);
}

/** Handles the error of a call that asks about a process: returns `ended` when there is none, and throws anything else. */
export function ifEnded<Ended>(ended: Ended): (error: unknown) => Ended {
  return unless(NO_PROCESS, ended);
}

/** Whether something is at the path. Rejects when the host cannot tell. */
export function isThere(path: string): Promise<boolean> {
  return access(path).then(() => true, ifAbsent(false));
}

/** Does what {@link isThere} does, without yielding to other work. Throws when the host cannot tell. */
export function isThereSync(path: string): boolean {
  try {
    accessSync(path);
    return true;
  } catch (error) {
    return ifAbsent(false)(error);
  }
}

function unless<Absent>(codes: ReadonlySet<string>, absent: Absent): (error: unknown) => Absent {
  return (error) => {
    if (codes.has(codeOf(error))) return absent;
    throw error;
  };
}
