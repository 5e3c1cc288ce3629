/** Why a copy into or out of a machine failed, as an error for users. */
import { type ErrorCode, HibernautError } from "@hibernaut/domain/errors";
import type { CommandExit } from "@hibernaut/guest";
import { capital } from "@hibernaut/lib/text";

/** Exit codes of the agent's tasks: `enum copy_exit` in `packages/guest/agent/copy.h`. */
export const CopyExit = { done: 0, failed: 1, notFound: 2, refused: 3 } as const;

const CODES: Readonly<Record<number, { code: ErrorCode; next: string }>> = {
  [CopyExit.notFound]: { code: "not_found", next: "Check the path in the machine." },
  [CopyExit.refused]: { code: "invalid_argument", next: "Nothing more was copied." },
};

/** Returns the error of a task that did not succeed. `said` is its error output. */
export function copyFailure(exit: CommandExit, said: string): HibernautError {
  const { code, next } = CODES[exit.signal === 0 ? exit.code : CopyExit.failed] ?? {
    code: "aborted" as const,
    next: "What was copied before that is complete. Try again.",
  };
  const failure = exit.failure === undefined ? undefined : capital(exit.failure);
  // Begins with a path, which must not be changed.
  const why = failure ?? (said.trim() || `The copy ended with ${exit.signal || exit.code}`);
  return new HibernautError(code, `${why.replace(/\.$/, "")}. ${next}`);
}
