/** The error of a copy that makes no sense: its ends do not fit together. */
import { ApiError } from "../error.ts";

/** Nothing was copied. */
export class CopyError extends ApiError {
  override name = "CopyError";

  constructor(message: string) {
    super({ code: "invalid_argument", message });
  }
}
