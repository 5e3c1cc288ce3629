/** Describes failures to people and to scripts. */

/** Exit codes. 124 is what `timeout` uses, 130 what a shell reports for a program that Ctrl-C ended. */
export const EXIT = { ok: 0, failed: 1, usage: 2, timedOut: 124, interrupted: 130 } as const;

/** The command or its arguments are wrong. */
export class UsageError extends Error {
  override name = "UsageError";
  readonly code = "usage";
}

/** Ctrl-C, or the end of the session. */
export class Interrupted extends Error {
  override name = "Interrupted";
  readonly code = "interrupted";
  /** Nothing was in progress, as at a question: the message is for programs only. Default: false. */
  readonly quiet: boolean;

  constructor(message: string, { quiet = false }: { quiet?: boolean } = {}) {
    super(message);
    this.quiet = quiet;
  }
}

/** A failure that the CLI itself detects. */
export class CliError extends Error {
  override name = "CliError";
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** A failure in the shape of the API's errors. */
export interface Failure {
  error: string;
  message: string;
  details: Record<string, unknown>;
  request_id: string | null;
}

/** What to do next after a failure whose message does not say it. */
const NEXT_STEP: Record<string, string> = {
  deadline_exceeded: "See `hibernaut machine status <id>`, or allow more time with --wait-timeout.",
};

/** Any thrown value as data. */
export function toFailure(error: unknown): Failure {
  const { code, message, details, requestId } = (error ?? {}) as Record<string, unknown>;
  return {
    error: typeof code === "string" ? code : "internal",
    message: typeof message === "string" ? message : String(error),
    details: typeof details === "object" && details !== null ? (details as Record<string, unknown>) : {},
    request_id: typeof requestId === "string" && requestId !== "" ? requestId : null,
  };
}

/** The line for a terminal, without `Error: `. */
export function failureText({ error, message, request_id }: Failure): string {
  const sentence = /[.!?]$/.test(message) ? message : `${message}.`;
  const next = message.includes(" --") ? undefined : NEXT_STEP[error];
  const trace =
    error === "internal" && request_id !== null && !message.includes(request_id) ? ` (request ${request_id})` : "";
  return `${sentence}${next ? ` ${next}` : ""}${trace}`;
}

/** Exit codes of failures with a specific one. A wrong argument is 2, whether the CLI or the platform finds it. */
const CODES: Record<string, number> = {
  usage: EXIT.usage,
  invalid_argument: EXIT.usage,
  deadline_exceeded: EXIT.timedOut,
  interrupted: EXIT.interrupted,
};

/** The exit code for a failure. */
export function exitCodeOf({ error }: Failure): number {
  return CODES[error] ?? EXIT.failed;
}
