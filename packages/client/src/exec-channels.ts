/**
 * First bytes of the messages of a streamed command, and what its last message says. The platform has the same in
 * `packages/api/src/routes/exec-stream.ts`.
 */
export const ExecChannel = { stdin: 0, stdout: 1, stderr: 2, exit: 3, resize: 4, end: 5 } as const;

/** How a streamed command ended. */
export interface ExecExit {
  /** 128 plus the number of the signal that ended the command. Null when the machine went away first. */
  exit_code: number | null;
  /** Number of the signal that ended the command, or 0. */
  exit_signal: number;
  /** Whether the command was killed because its time was up. */
  timed_out: boolean;
  /** Why the command could not be started, or why its end is unknown. */
  error: string | null;
}
