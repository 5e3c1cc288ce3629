/** Classifies errors from the driver by what they mean for the connection. Pure. */
import { DatabaseUnavailableError } from "../storage.ts";

/**
 * - `connection`: the connection is lost or can no longer be trusted.
 * - `operational`: the server answered that it cannot do this at the moment.
 */
type Fault = "connection" | "operational";

/** A new connection could not be made, for whatever reason. */
export class CannotConnectError extends Error {
  override name = "CannotConnectError";
}

/** Codes of Node's sockets and name resolution. */
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

/** Messages of errors to which the driver gives no code. */
const DRIVER_MESSAGES =
  /^(Connection terminated|Client has encountered a connection error|Client was closed|Query read timeout|timeout expired|Received unexpected)/;

/** Class 08, and a server that ends the session (57P01 shutdown, 57P02 crash, 57P03 starting, 57P05 and 25P03 idle). */
const CONNECTION_STATES = /^(08...|57P0[1235]|25P0[34])$/;

/**
 * Conflicts (40), insufficient resources (53), objects in use (55), timeouts and cancellation (57), the system (58),
 * a server that became read-only (25006), and prepared statements that the server lost or that no longer fit.
 */
const OPERATIONAL_STATES = /^(40...|53...|55006|55P03|57...|58...|25006|26000)$/;
const STALE_PLAN = /cached plan must not change result type/;

/**
 * Classifies an error. Undefined when the server refused the statement itself, when it is not a database error, or when
 * it already is "unavailable", after which the outcome of a write may be unknown and must not be tried again.
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

/** Returns the five characters of SQLSTATE, also when the ORM wrapped the driver's error. */
export function sqlState(error: unknown): string | undefined {
  for (let current = error; current instanceof Error; current = current.cause)
    if ("code" in current && typeof current.code === "string" && /^(?=.*\d)[0-9A-Z]{5}$/.test(current.code))
      return current.code;
  return undefined;
}
