/** Asking before something is done that cannot be undone. */
import { UsageError } from "./failure.ts";
import { confirm } from "./terminal.ts";

export interface AgreeOptions {
  /** What to say when it is not done. */
  otherwise?: string;
  /** False when standard input has been read for something else. */
  canAsk?: boolean;
}

/** Settles when the person at the terminal agrees; rejects when they do not, or when there is no terminal. */
export async function agree(
  warning: string,
  { otherwise = "Nothing was destroyed.", canAsk = true }: AgreeOptions = {},
): Promise<void> {
  if (!canAsk || !process.stdin.isTTY) throw new UsageError(`${otherwise} ${warning} Add --yes to agree.`);
  if (!(await confirm(`${warning} Go on?`))) throw new UsageError(otherwise);
}
