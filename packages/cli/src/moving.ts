/** Shows how far moves of machines are. */
import type { Context } from "./context.ts";
import { megabytes } from "./terminal.ts";

const BAR_WIDTH = 24;

/** One machine on its way. */
export interface Moving {
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

/** A display of moves. */
export interface MoveDisplay {
  show(moving: Moving): void;
  end(): void;
}

/**
 * Returns a bar on a terminal, a line for each step elsewhere, and with `--json` every event as a line of JSON. All of it goes
 * to standard error, because standard output is for the result.
 */
export function moveDisplay(context: Pick<Context, "json">, stream: NodeJS.WriteStream = process.stderr): MoveDisplay {
  if (context.json) return { show: (moving) => void stream.write(`${JSON.stringify(moving)}\n`), end: () => {} };
  return stream.isTTY ? bar(stream) : plainLines(stream);
}

/** Returns the line of one move. Pure. */
export function moveLine({ what, host, step, bytes, total_bytes: total }: Moving): string {
  if (step !== "precopy" && step !== "copy") return `${STEPS[step]} ${what} (to host ${host})`;
  const share = total === 0 ? 1 : Math.min(1, bytes / total);
  const full = Math.round(share * BAR_WIDTH);
  const gauge = `[${"#".repeat(full)}${"-".repeat(BAR_WIDTH - full)}]`;
  return `${STEPS[step]} ${what} ${gauge} ${Math.floor(share * 100)}%, ${megabytes(bytes)} of ${megabytes(total)}`;
}

function bar(stream: NodeJS.WriteStream): MoveDisplay {
  return {
    // One line only: a longer one could not be redrawn.
    show: (moving) =>
      void stream.write(`\r\x1b[2K${moveLine(moving).slice(0, Math.max(20, (stream.columns || 80) - 1))}`),
    end: () => void stream.write("\r\x1b[2K"),
  };
}

function plainLines(stream: NodeJS.WriteStream): MoveDisplay {
  const said = new Map<string, string>();
  return {
    show(moving) {
      if (said.get(moving.what) === moving.step) return;
      said.set(moving.what, moving.step);
      stream.write(`${STEPS[moving.step]} ${moving.what} (to host ${moving.host})...\n`);
    },
    end: () => {},
  };
}
