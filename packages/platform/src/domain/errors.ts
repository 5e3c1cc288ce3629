/**
 * The registry of errors that users meet. Every code is stable, has one HTTP status and a
 * section in docs/errors.md; anything else that is thrown is a fault of ours and becomes `internal`.
 */
export const ERROR_STATUS = {
  invalid_argument: 400,
  unauthenticated: 401,
  permission_denied: 403,
  not_found: 404,
  deadline_exceeded: 408,
  already_exists: 409,
  aborted: 409,
  failed_precondition: 412,
  payload_too_large: 413,
  unsupported_media_type: 415,
  resource_exhausted: 429,
  internal: 500,
  unavailable: 503,
} as const;

export type ErrorCode = keyof typeof ERROR_STATUS;

/** A fault with a stable code, a sentence for people (what, why, what next) and data for programs. */
export class HibernautError extends Error {
  override name = "HibernautError";
  readonly code: ErrorCode;
  readonly details: Record<string, unknown>;

  constructor(code: ErrorCode, message: string, details: Record<string, unknown> = {}, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.details = details;
  }

  /** The HTTP status that stands for the code. */
  get status(): number {
    return ERROR_STATUS[this.code];
  }
}

/** Whether `error` is ours and has one of the codes (any code when none is named). */
export function isHibernautError(error: unknown, ...codes: ErrorCode[]): error is HibernautError {
  return error instanceof HibernautError && (codes.length === 0 || codes.includes(error.code));
}
