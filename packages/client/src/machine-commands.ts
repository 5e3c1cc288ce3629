/** Commands in one machine. */
import type { MachineClient } from "./machine-client.ts";
import type { InRunning } from "./machine-files.ts";
import type { CallOptions } from "./transport.ts";
import type { ExecRequest, ExecResult } from "./types.ts";

/** The platform returns that many bytes of each output at most. */
export const MOST_OUTPUT_BYTES = 1024 * 1024;

/** How to run a command. */
export interface RunOptions extends CallOptions, Omit<ExecRequest, "command"> {
  /** Bytes of each output that are kept, from its beginning. Default, and most: {@link MOST_OUTPUT_BYTES}. */
  maxOutputBytes?: number;
}

/** Runs commands in one machine. */
export class MachineCommands {
  readonly #client: Pick<MachineClient, "runExec">;
  readonly #of: [app: string, id: string];
  readonly #running: InRunning;

  constructor(client: Pick<MachineClient, "runExec">, of: [app: string, id: string], running: InRunning) {
    this.#client = client;
    this.#of = of;
    this.#running = running;
  }

  /**
   * Runs a command and resolves when it has ended, however: look at `exit_code`, and at `timed_out`, which is true if it was
   * killed after `timeout` seconds (default: 60). `truncated` says that there was more output than is returned. A text is run by
   * the image's `/bin/sh`, a list as it is. When the signal is aborted, the command is killed.
   */
  run(
    command: string | readonly string[],
    { maxOutputBytes = MOST_OUTPUT_BYTES, signal, ...how }: RunOptions = {},
  ): Promise<ExecResult> {
    const options = signal === undefined ? {} : { signal };
    const words = typeof command === "string" ? ["/bin/sh", "-c", command] : [...command];
    return this.#running(async () => {
      const result = await this.#client.runExec(...this.#of, { ...how, command: words }, options);
      const [stdout, stderr] = [result.stdout, result.stderr].map((text) => beginning(text, maxOutputBytes));
      if (stdout === undefined && stderr === undefined) return result;
      return { ...result, stdout: stdout ?? result.stdout, stderr: stderr ?? result.stderr, truncated: true };
    }, options);
  }
}

/** The first bytes of a text without half a character, or undefined if it has no more than that. */
function beginning(text: string, most: number): string | undefined {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return undefined;
  let end = most;
  // Bytes after the first of a character begin with the bits 10.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString("utf8", 0, end);
}
