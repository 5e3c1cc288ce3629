/**
 * The codes of all errors that users see, with their HTTP status. Codes are stable, and each has a section in
 * docs/errors.md. Any other error is a fault of the platform and becomes `internal`.
 */
export const ERROR_STATUS = {
  invalid_argument: 400,
  unauthenticated: 401,
  permission_denied: 403,
  not_found: 404,
  deadline_exceeded: 408,
  already_exists: 409,
  aborted: 409,
  lease_held: 409,
  moved: 409,
  failed_precondition: 412,
  payload_too_large: 413,
  unsupported_media_type: 415,
  upgrade_required: 426,
  resource_exhausted: 429,
  internal: 500,
  draining: 503,
  host_full: 503,
  host_unreachable: 503,
  unavailable: 503,
} as const;

export type ErrorCode = keyof typeof ERROR_STATUS;

/** An error with a stable code, a message for people (what happened, why, what to do next) and details for programs. */
export class HibernautError extends Error {
  override name = "HibernautError";
  readonly code: ErrorCode;
  readonly details: Record<string, unknown>;

  constructor(code: ErrorCode, message: string, details: Record<string, unknown> = {}, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.details = details;
  }

  /** The HTTP status of the code. */
  get status(): number {
    return ERROR_STATUS[this.code];
  }
}

/** Whether `error` is a HibernautError with one of the codes, or with any code when none is given. */
export function isHibernautError(error: unknown, ...codes: ErrorCode[]): error is HibernautError {
  return error instanceof HibernautError && (codes.length === 0 || codes.includes(error.code));
}
