/** All errors of the API: stable codes, their status, and problem details (RFC 9457). */
import { STATUS_CODES } from "node:http";
import type { ProblemWire } from "./schemas.ts";

/** The codes, each with its status. Clients can rely on codes, but the sentences may change. */
const PROBLEM_STATUS = {
  /** The request does not match its schema. `errors` lists the invalid fields. */
  invalid_input: 400,
  /** The request is not valid HTTP or JSON. */
  malformed_request: 400,
  /** There is no such row or address. */
  not_found: 404,
  /** The address exists, but not with this method. The header `allow` lists those that it has. */
  method_not_allowed: 405,
  still_referenced: 409,
  body_too_large: 413,
  unsupported_media_type: 415,
  unknown_supplier: 422,
  /** A fault of the service. Its log has the details. */
  internal_error: 500,
  database_unavailable: 503,
} as const;

type ProblemCode = keyof typeof PROBLEM_STATUS;

/** An invalid field. */
export type FieldError = NonNullable<ProblemWire["errors"]>[number];

/** The media type of problem details. */
export const PROBLEM_TYPE = "application/problem+json";

/** Thrown by handlers. The error handler sends it as the reply. */
export class Problem extends Error {
  override name = "Problem";
  readonly code: ProblemCode;
  readonly errors: FieldError[] | undefined;

  constructor(code: ProblemCode, detail: string, options: { errors?: FieldError[]; cause?: unknown } = {}) {
    super(detail, { cause: options.cause });
    this.code = code;
    this.errors = options.errors;
  }

  /** The status of the reply. */
  get status(): number {
    return PROBLEM_STATUS[this.code];
  }

  /** The body of the reply. */
  wire(): ProblemWire {
    const { status, code, message: detail, errors } = this;
    const title = STATUS_CODES[status] ?? "Error";
    return { type: "about:blank", title, status, detail, code, ...(errors && { errors }) };
  }
}

/** Returns the problem of a row that does not exist. */
export function noSuch(what: string, id: number): Problem {
  return new Problem("not_found", `There is no ${what} ${id}.`);
}
