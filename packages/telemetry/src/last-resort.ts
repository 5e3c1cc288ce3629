/**
 * What a process that serves others does about errors that nobody expected: the platform, and a proxy of its own.
 *
 * A rejection that nobody awaited concerns the work that it ended, and nothing else: it is reported, and the process
 * keeps running. An exception that nobody caught may have stopped a function halfway, and left behind what no code expects: the
 * process ends, and systemd starts it again within seconds. Guests keep running meanwhile.
 */
import { type Fault, onFault, reportFault } from "@hibernaut/lib/background";
import type { Logger } from "pino";

/** EX_SOFTWARE of sysexits.h: neither a success nor what any command of the CLI exits with, so that systemd starts it again. */
export const EXIT_BROKEN = 70;

const FORGOTTEN = "a promise that nobody awaited";

/** Reports faults in the log from now on. Call it once per process. */
export function installLastResort(log: Pick<Logger, "error" | "fatal">): void {
  onFault(({ what, error, omitted }: Fault) => {
    log.error(
      { err: toError(error), what, ...(omitted > 0 && { omitted }) },
      "something failed that nobody waited for",
    );
  });
  process.on("unhandledRejection", (reason) => reportFault("rejection", FORGOTTEN, reason));
  process.on("uncaughtException", (error) => {
    log.fatal({ err: toError(error) }, "an error that nobody caught ends this process");
    process.exit(EXIT_BROKEN);
  });
}

function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
