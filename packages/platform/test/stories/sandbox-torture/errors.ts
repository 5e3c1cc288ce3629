/** Which errors a program expects of the SDK. */
import * as sdk from "e2b";

type ErrorClass = abstract new (...args: never[]) => Error;

/** Every class of errors that the package exports. */
const CLASSES: readonly ErrorClass[] = Object.values(sdk).filter(
  (value): value is typeof value & ErrorClass => typeof value === "function" && value.prototype instanceof Error,
);
/** What `fetch` says when there is nobody, or nobody any more. The SDK passes it on. */
const CUT_OFF = /fetch failed|terminated|other side closed|ECONNREFUSED|ECONNRESET|socket/i;

/**
 * Says what is wrong with an error that a call of the SDK rejected with; undefined for one that its program expects.
 * `away`: whether the platform was, at some time during the call. `disturbed`: whether anything was killed that the call needs.
 */
export function flawOf(error: unknown, { away, disturbed }: { away: boolean; disturbed: boolean }): string | undefined {
  const known = CLASSES.some((one) => error instanceof one);
  if (!known && away && error instanceof TypeError && CUT_OFF.test(`${error.message} ${String(error.cause)}`))
    return undefined;
  if (!known) return `no class that the SDK exports: ${inFull(error)}`;
  if ((error as { statusCode?: number }).statusCode === 500) return `a fault of the platform: ${inFull(error)}`;
  return away || disturbed ? undefined : `nothing was killed: ${inFull(error)}`;
}

/** With its causes. */
export function inFull(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : ` <- ${inFull(error.cause)}`;
  return `${error.constructor.name}: ${error.message}${cause}`;
}
