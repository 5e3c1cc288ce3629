/** Every way to fail: a stable code, its status, and the problem details of RFC 9457 that tell of it. */
import { STATUS_CODES } from "node:http";
import type { ProblemWire } from "./schemas.ts";

/** The codes, each with its status. Clients may rely on them; the sentences may change. */
const PROBLEM_STATUS = {
  /** The request does not fit its schema; `errors` names each field. */
  invalid_input: 400,
  /** The request is not HTTP or JSON as it should be. */
  malformed_request: 400,
  /** No such row, or no such address. */
  not_found: 404,
  still_referenced: 409,
  body_too_large: 413,
  unsupported_media_type: 415,
  unknown_supplier: 422,
  /** A fault of the service; its log has the details. */
  internal_error: 500,
  database_unavailable: 503,
} as const;

/** A code from the list above. */
type ProblemCode = keyof typeof PROBLEM_STATUS;

/** One field at fault. */
export type FieldError = NonNullable<ProblemWire["errors"]>[number];

/** The media type of problem details. */
export const PROBLEM_TYPE = "application/problem+json";

/** Thrown by handlers; the error handler answers with it. */
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

/** The problem of a row that is not there. */
export function noSuch(what: string, id: number): Problem {
  return new Problem("not_found", `There is no ${what} ${id}.`);
}
