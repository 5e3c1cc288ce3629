/** What an error from the driver says about the connection. Pure. */
import { DatabaseUnavailableError } from "../storage.ts";

/**
 * - `connection`: the connection is gone, or cannot be trusted any more.
 * - `operational`: the server answered, and could not do it just now.
 */
type Fault = "connection" | "operational";

/** A new connection could not be made, whatever the reason. */
export class CannotConnectError extends Error {
  override name = "CannotConnectError";
}

/** Of Node's sockets and name look-up. */
const SOCKET_CODES = new Set([
  "ECONNRESET",
  "EPIPE",
  "ECONNREFUSED",
  "ECONNABORTED",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENETDOWN",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ENOENT",
  "ERR_STREAM_DESTROYED",
  "ERR_STREAM_WRITE_AFTER_END",
]);

/** The driver gives these no code. */
const DRIVER_MESSAGES =
  /^(Connection terminated|Client has encountered a connection error|Client was closed|Query read timeout|timeout expired|Received unexpected)/;

/** Class 08, and the server saying good-bye (57P01 shutdown, 57P02 crash, 57P03 starting, 57P05 idle, 25P03 likewise). */
const CONNECTION_STATES = /^(08...|57P0[1235]|25P0[34])$/;

/**
 * Conflicts (40), no resources (53), locks and objects in use (55), time-outs and cancelling (57), the system (58),
 * a server turned read-only (25006), and prepared statements that the server lost or that no longer fit.
 */
const OPERATIONAL_STATES = /^(40...|53...|55006|55P03|57...|58...|25006|26000)$/;
const STALE_PLAN = /cached plan must not change result type/;

/**
 * Undefined: the statement itself was refused, it is no database error at all, or it is the last word: who says
 * "unavailable" may have left a write behind whose outcome nobody knows, and that must not be tried again.
 */
export function faultOf(error: unknown): Fault | undefined {
  if (error instanceof DatabaseUnavailableError) return undefined;
  for (let current = error; current instanceof Error; current = current.cause) {
    if (current instanceof CannotConnectError) return "connection";
    const code = "code" in current && typeof current.code === "string" ? current.code : "";
    if (SOCKET_CODES.has(code) || CONNECTION_STATES.test(code)) return "connection";
    if (OPERATIONAL_STATES.test(code) || STALE_PLAN.test(current.message)) return "operational";
    if (code === "" && DRIVER_MESSAGES.test(current.message)) return "connection";
  }
  return undefined;
}

/** The five characters of SQLSTATE, also when the ORM wrapped the driver's error. */
export function sqlState(error: unknown): string | undefined {
  for (let current = error; current instanceof Error; current = current.cause)
    if ("code" in current && typeof current.code === "string" && /^(?=.*\d)[0-9A-Z]{5}$/.test(current.code))
      return current.code;
  return undefined;
}
