/** The error of a failed call. */

/** The parts of an {@link ApiError}. */
export interface ApiErrorParts {
  code: string;
  message: string;
  status?: number;
  details?: Record<string, unknown>;
  requestId?: string;
  cause?: unknown;
}

/** A call that the platform refused, or that it didn't answer (`unavailable`, `deadline_exceeded`). */
export class ApiError extends Error {
  override name = "ApiError";
  /** A stable code: `not_found`, `deadline_exceeded`, ... */
  readonly code: string;
  /** The HTTP status. 0 when there was no reply. */
  readonly status: number;
  /** Data for programs. Which, depends on the code. */
  readonly details: Record<string, unknown>;
  /** The platform's log mentions the request under this id. Empty when there was no reply. */
  readonly requestId: string;

  constructor({ code, message, status = 0, details = {}, requestId = "", cause }: ApiErrorParts) {
    super(message, { cause });
    this.code = code;
    this.status = status;
    this.details = details;
    this.requestId = requestId;
  }
}
