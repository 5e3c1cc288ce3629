/** Errors as E2B's clients expect them: a number that is the HTTP status, and a sentence. */
import { type ErrorCode, HibernautError, isHibernautError } from "@hibernaut/domain/errors";
import { GuestError } from "@hibernaut/guest";

/** The body of every refusal. */
export interface Failure {
  code: number;
  message: string;
}

/** What a code becomes if it is not the status that it has in `/v1`. The clients know 409, and no 412. */
const STATUS: Partial<Record<ErrorCode, number>> = {
  failed_precondition: 409,
  permission_denied: 403,
  deadline_exceeded: 504,
  host_full: 503,
};

/** An answer other than success. */
export class Refusal extends Error {
  override name = "Refusal";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Returns what a `catch` is given that takes a {@link Refusal} with this status for nothing, and throws all else again. */
export function ifRefused(status: number): (error: unknown) => undefined {
  return (error) => {
    if (!(error instanceof Refusal && error.status === status)) throw error;
    return undefined;
  };
}

/** Returns what the client is told about an error. Any other than ours is a fault of the platform. */
export function failureOf(error: unknown): Failure {
  if (error instanceof Refusal) return { code: error.status, message: error.message };
  if (error instanceof HibernautError) return { code: STATUS[error.code] ?? error.status, message: error.message };
  // The machine went away, or its agent said something wrong.
  if (error instanceof GuestError) return { code: 502, message: `The sandbox does not answer: ${error.message}.` };
  const { statusCode, message } = error as { statusCode?: unknown; message?: unknown };
  // Fastify's own: a body that is not JSON, or is too large.
  if (typeof statusCode === "number" && statusCode >= 400 && statusCode < 500)
    return { code: statusCode === 413 ? 413 : 400, message: String(message) };
  return { code: 500, message: "Something is wrong with the platform. Its log says more." };
}

/** Whether it says that there is no such machine, app or template. */
export function isMissing(error: unknown): boolean {
  return isHibernautError(error, "not_found");
}
