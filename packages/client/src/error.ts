/** What a call fails with. */

/** The parts of an {@link ApiError}. */
export interface ApiErrorParts {
  code: string;
  message: string;
  status?: number;
  details?: Record<string, unknown>;
  requestId?: string;
  cause?: unknown;
}

/** A refusal of the platform, or `unavailable` when it did not answer at all. */
export class ApiError extends Error {
  override name = "ApiError";
  /** A stable code: `not_found`, `deadline_exceeded`, ... */
  readonly code: string;
  /** The HTTP status; 0 when there was no reply. */
  readonly status: number;
  readonly details: Record<string, unknown>;
  /** What the platform's log knows the request by; empty when there was no reply. */
  readonly requestId: string;

  constructor({ code, message, status = 0, details = {}, requestId = "", cause }: ApiErrorParts) {
    super(message, { cause });
    this.code = code;
    this.status = status;
    this.details = details;
    this.requestId = requestId;
  }
}
