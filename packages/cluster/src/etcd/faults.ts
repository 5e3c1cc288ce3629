/** How etcd says what went wrong, and what follows from it. Pure, except for the errors that it makes. */
import { HibernautError } from "@hibernaut/domain/errors";
import { messageOf } from "@hibernaut/lib/text";

/** Codes of gRPC that mean more than "it does not work at the moment". */
const NOT_FOUND = 5;
const RESOURCE_EXHAUSTED = 8;
const OUT_OF_RANGE = 11;
const UNAUTHENTICATED = 16;
const PERMISSION_DENIED = 7;
const INVALID_ARGUMENT = 3;

/** Errors of connecting: nothing was sent. */
const UNSENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "EADDRNOTAVAIL"]);

/** An error that etcd itself reported. */
export class EtcdFault extends Error {
  override name = "EtcdFault";
  /** The code of gRPC. */
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export function isLeaseGone(error: unknown): boolean {
  return error instanceof EtcdFault && error.code === NOT_FOUND && error.message.includes("lease");
}

export function isCompacted(error: unknown): boolean {
  return error instanceof EtcdFault && error.code === OUT_OF_RANGE;
}

/** Whether a request has certainly done nothing, so that it may be sent once more whatever it is. */
export function hasDoneNothing(error: unknown): boolean {
  if (error instanceof EtcdFault) return error.message.includes("no leader") || error.message.includes("not capable");
  return UNSENT.has((error as NodeJS.ErrnoException).code ?? "");
}

/** Whether another member of etcd, or the same one later, may answer. */
export function mayPass(error: unknown): boolean {
  if (!(error instanceof EtcdFault)) return true;
  return ![NOT_FOUND, RESOURCE_EXHAUSTED, OUT_OF_RANGE, UNAUTHENTICATED, PERMISSION_DENIED, INVALID_ARGUMENT].includes(
    error.code,
  );
}

/** The error that the rest of the platform gets. */
export function unavailable(error: unknown, endpoint: string): HibernautError {
  const why =
    error instanceof EtcdFault || !(error instanceof AggregateError) ? messageOf(error) : "no address answers";
  return new HibernautError(
    "unavailable",
    `The cluster directory does not answer: etcd at ${endpoint}: ${why}. ${adviceFor(error)}`,
    {},
    { cause: error },
  );
}

function adviceFor(error: unknown): string {
  if (error instanceof EtcdFault) {
    if (error.code === RESOURCE_EXHAUSTED)
      return "Compact and defragment etcd, disarm its alarm with `etcdctl alarm disarm`, and start it with --auto-compaction-retention=1h.";
    if ([UNAUTHENTICATED, PERMISSION_DENIED].includes(error.code))
      return "Let hosts read and write keys below /hib/ without a password, and use client certificates to keep others out.";
  }
  return "Check that most members of etcd run, and that this host can connect to them.";
}
