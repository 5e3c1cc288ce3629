/** What users see: colour, progress, tables. */
import { styleText } from "node:util";
import { shown, visible } from "./visible.ts";

type Style = "red" | "green" | "yellow" | "dim" | "bold";

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME_MS = 100;
const CLEAR_LINE = "\r\x1b[2K";

/** Colours text for a stream that shows colours, unless NO_COLOR is set. */
export function style(format: Style, text: string, stream: NodeJS.WriteStream): string {
  const plain = !stream.isTTY || Boolean(process.env.NO_COLOR) || process.env.TERM === "dumb";
  return plain ? text : styleText(format, text, { validateStream: false });
}

/** Writes, and waits while the terminal, or the program that reads the output, is slow. */
export async function write(text: string | Uint8Array, stream: NodeJS.WriteStream = process.stdout): Promise<void> {
  if (!stream.write(text)) await new Promise((resolve) => stream.once("drain", resolve));
}

/** Shows on stderr that work is in progress: a spinner with the elapsed time on a terminal, otherwise one line. */
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
  // Labels have names of files and images in them, which others may have chosen.
  const text = visible(label);
  let frame = 0;
  const draw = () => {
    const seconds = ((Date.now() - started) / 1000).toFixed(1);
    stream.write(`${CLEAR_LINE}${FRAMES[frame++ % FRAMES.length]} ${text} ${style("dim", `${seconds} s`, stream)}`);
  };
  draw();
  const timer = setInterval(draw, FRAME_MS);
  try {
    return await work;
  } finally {
    clearInterval(timer);
    clearLine(stream);
  }
}

/** Draws a line of a terminal again. It is cut: a longer one could not be redrawn. */
export function redraw(line: string, stream: NodeJS.WriteStream): void {
  stream.write(`${CLEAR_LINE}${shown(line, stream).slice(0, Math.max(20, (stream.columns || 80) - 1))}`);
}

/** Leaves the line of a terminal empty for what follows. */
export function clearLine(stream: NodeJS.WriteStream): void {
  stream.write(CLEAR_LINE);
}

/** Cells up to this width are never shortened: ids stay whole, because people copy them. */
const LEAST_CELL = 20;
const GAP = "  ";

/** Headers of the columns that a narrow terminal goes without; the first of them goes first. */
export type Spare = readonly string[];

/**
 * Columns as wide as their widest cell; the first row is the header. To fit `width` (default: the terminal's, unlimited
 * elsewhere), long cells are shortened, and then spare columns are left out.
 */
export function table(
  rows: readonly (readonly string[])[],
  { width = widthOf(process.stdout), spare = [] }: { width?: number; spare?: Spare } = {},
): string {
  const widths = fitting(widest(rows), width);
  const [first, ...others] = spare;
  if (first !== undefined && total(widths) > width)
    return table(withoutColumn(rows, rows[0]?.indexOf(first) ?? -1), { width, spare: others });
  const cells = rows.map((row) => row.map((cell, column) => shortened(cell, widths[column] ?? 0)));
  return columns(cells, widths);
}

function withoutColumn(rows: readonly (readonly string[])[], index: number): string[][] {
  return rows.map((row) => row.filter((_, column) => column !== index));
}

function total(widths: readonly number[]): number {
  return widths.reduce((sum, one) => sum + one, GAP.length * (widths.length - 1));
}

/** Names and values, one pair per line; those without a value are skipped. Values are never shortened. */
export function fields(rows: readonly (readonly [name: string, value: string | null | undefined])[]): string {
  const known = rows.flatMap(([name, value]) => (value === null || value === undefined ? [] : [[name, value]]));
  return columns(known, widest(known));
}

/** The columns of a terminal; unlimited for anything else, so that programs read everything. */
export function widthOf(stream: Pick<NodeJS.WriteStream, "isTTY" | "columns">): number {
  return stream.isTTY && stream.columns > 0 ? stream.columns : Number.POSITIVE_INFINITY;
}

function widest(rows: readonly (readonly string[])[]): number[] {
  return (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
}

/** Narrows the widest column until all columns fit or none can become narrower. */
function fitting(widths: readonly number[], width: number): number[] {
  const fit = [...widths];
  while (total(fit) > width && Math.max(...fit) > LEAST_CELL) {
    const column = fit.indexOf(Math.max(...fit));
    fit[column] = (fit[column] ?? 0) - 1;
  }
  return fit;
}

/** A path keeps its end, which distinguishes it; everything else keeps its beginning. */
function shortened(cell: string, width: number): string {
  if (cell.length <= width) return cell;
  return /^[^\s{]*\/\S*$/.test(cell) ? `…${cell.slice(1 - width)}` : `${cell.slice(0, width - 1)}…`;
}

function columns(rows: readonly (readonly string[])[], widths: readonly number[]): string {
  const line = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(GAP);
  return rows.map((row) => line(row).trimEnd()).join("\n");
}

/** Texts as lines; absent ones are skipped. */
export function lines(...texts: readonly (string | undefined | false)[]): string {
  return texts.filter((text) => text !== undefined && text !== false && text !== "").join("\n");
}

/** `12 s ago` */
export function ago(time: string, now = Date.now()): string {
  return `${spanText(now - Date.parse(time))} ago`;
}

/** `12 s`: how long it is until then. */
export function until(time: string, now = Date.now()): string {
  return spanText(Date.parse(time) - now);
}

function spanText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`;
}

/** An image for people: without the digest, unless only the digest names it. */
export function shortImage(ref: string): string {
  const [, name = ref] =
    /^((?:oci|oci-archive|docker-archive|docker-daemon|upload):.*|.*:[^@/]+)@sha256:[0-9a-f]{64}$/.exec(ref) ?? [];
  return name;
}

/** The beginning of a digest, enough to tell one from others. */
export function shortDigest(digest: string): string {
  return digest.slice("sha256:".length, "sha256:".length + 12);
}

/** `1 machine`, `2 machines` */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** `256 MB` */
export function megabytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(bytes < 10_485_760 ? 1 : 0)} MB`;
}
