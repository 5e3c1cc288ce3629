/** A query that is not answered, with the reason in words and the code that clients read from `extensions`. */
export class QueryError extends Error {
  override name = "QueryError";
  readonly code: string;

  constructor(message: string, code = "BAD_REQUEST") {
    super(message);
    this.code = code;
  }
}
