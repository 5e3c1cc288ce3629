/** Shows how far moves of machines are. */
import type { Context } from "./context.ts";
import { type Display, gauge, jsonLines, oneLine, shareOf } from "./display.ts";
import { interruptible } from "./interrupting.ts";
import { megabytes } from "./terminal.ts";

/** One machine on its way. */
interface Moving {
  /** What the line is about, such as `shop/web`. */
  what: string;
  host: string;
  step: "check" | "precopy" | "suspend" | "copy" | "commit" | "done";
  bytes: number;
  total_bytes: number;
}

const STEPS: Record<Moving["step"], string> = {
  check: "Checking",
  precopy: "Copying memory of",
  suspend: "Suspending",
  copy: "Copying",
  commit: "Handing over",
  done: "Moved",
};

/**
 * Moves machines, and shows how far they are: a bar on a terminal, a line for each step elsewhere, and with `--json` every
 * event as a line of JSON. Ctrl-C aborts the signal, and rejects with this message.
 */
export async function showingMoves<T>(
  { json }: Context,
  interrupted: string,
  move: (show: (moving: Moving) => void, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { stderr } = process;
  const display = json ? jsonLines<Moving>(stderr) : stderr.isTTY ? oneLine(moveLine, stderr) : plainLines(stderr);
  using stop = interruptible(interrupted);
  try {
    return await move(display.show, stop.signal);
  } catch (error) {
    throw stop.signal.aborted ? stop.signal.reason : error;
  } finally {
    display.end();
  }
}

function moveLine(moving: Moving): string {
  const { what, step, bytes, total_bytes: total } = moving;
  if (step !== "precopy" && step !== "copy") return stepText(moving);
  const share = shareOf(bytes, total);
  const amounts = `${Math.floor(share * 100)}%, ${megabytes(bytes)} of ${megabytes(total)}`;
  return `${STEPS[step]} ${what} ${gauge(share)} ${amounts}`;
}

function stepText({ what, host, step }: Moving): string {
  return `${STEPS[step]} ${what} (to host ${host})`;
}

function plainLines(stream: NodeJS.WriteStream): Display<Moving> {
  const said = new Map<string, string>();
  return {
    show(moving) {
      if (said.get(moving.what) === moving.step) return;
      said.set(moving.what, moving.step);
      stream.write(`${stepText(moving)}...\n`);
    },
    end: () => {},
  };
}
