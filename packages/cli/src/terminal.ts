/** What people see: colour, progress, tables. */
import { styleText } from "node:util";

type Style = "red" | "green" | "yellow" | "dim" | "bold";

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME_MS = 100;

/** Colours text for a stream that shows colours, unless NO_COLOR is set. */
export function style(format: Style, text: string, stream: NodeJS.WriteStream): string {
  const plain = !stream.isTTY || Boolean(process.env.NO_COLOR) || process.env.TERM === "dumb";
  return plain ? text : styleText(format, text, { validateStream: false });
}

/** Shows on stderr that work goes on: a spinner with the seconds on a terminal, else one line. */
export async function showProgress<T>(
  label: string,
  work: Promise<T>,
  stream: NodeJS.WriteStream = process.stderr,
): Promise<T> {
  if (!stream.isTTY) {
    stream.write(`${label}...\n`);
    return work;
  }
  const started = Date.now();
  let frame = 0;
  const draw = () => {
    const seconds = ((Date.now() - started) / 1000).toFixed(1);
    stream.write(`\r\x1b[2K${FRAMES[frame++ % FRAMES.length]} ${label} ${style("dim", `${seconds} s`, stream)}`);
  };
  draw();
  const timer = setInterval(draw, FRAME_MS);
  try {
    return await work;
  } finally {
    clearInterval(timer);
    stream.write("\r\x1b[2K");
  }
}

/** Asks on the terminal; anything but yes is no. */
export async function confirm(question: string): Promise<boolean> {
  const { createInterface } = await import("node:readline/promises");
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question(`${question} [y/N] `).finally(() => terminal.close());
  return /^y(es)?$/i.test(answer.trim());
}

/** Columns as wide as their widest cell; the first row is the head. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ");
  return rows.map((row) => line(row).trimEnd()).join("\n");
}

/** `12 s ago` */
export function ago(time: string, now = Date.now()): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(time)) / 1000));
  if (seconds < 120) return `${seconds} s ago`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min ago`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h ago` : `${Math.round(seconds / 86_400)} d ago`;
}

/** `256 MB` */
export function megabytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(bytes < 10_485_760 ? 1 : 0)} MB`;
}
