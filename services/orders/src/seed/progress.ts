/** Shows the progress of a long task: a bar on a terminal, otherwise a line for each quarter. */

const WIDTH = 30;
const FRAME_MS = 50;

/** Reports progress. `end` finishes the display, also when the work failed. */
export interface Progress {
  update(done: number): void;
  end(): void;
}

/** Starts showing progress towards `total`. */
export function showProgress(label: string, total: number, stream: NodeJS.WriteStream): Progress {
  const share = (done: number) => Math.min(1, done / Math.max(1, total));
  const percent = (done: number) => `${Math.floor(share(done) * 100)}%`;
  if (!stream.isTTY) {
    let quarter = 0;
    return {
      update(done) {
        const reached = Math.floor(share(done) * 4);
        if (reached > quarter) stream.write(`${label}: ${percent(done)}\n`);
        quarter = Math.max(quarter, reached);
      },
      end() {},
    };
  }
  let drawn = 0;
  return {
    update(done) {
      const now = Date.now();
      if (now - drawn < FRAME_MS && done < total) return;
      drawn = now;
      const full = Math.round(share(done) * WIDTH);
      const bar = "█".repeat(full) + "░".repeat(WIDTH - full);
      stream.write(`\r\x1b[2K${label} ${bar} ${percent(done).padStart(4)}`);
    },
    end: () => void stream.write("\r\x1b[2K"),
  };
}
