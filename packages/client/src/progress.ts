/** Reads the replies that tell line by line how far something is, and at last how it ended. */
import { ApiError } from "./error.ts";
import { errorOf } from "./transport.ts";
import type {
  DrainedHost,
  HostDrainProgress,
  LogEntry,
  MoveProgress,
  PulledImage,
  PullProgress,
  ReleaseCommandEnd,
} from "./types.ts";

/** Resolves with the image that was pulled. */
export function readPull(
  lines: AsyncIterable<string>,
  onProgress: (progress: PullProgress) => void = () => {},
): Promise<PulledImage> {
  const lost = "The platform ended before the image was ready. Pull it again: what was downloaded is kept.";
  return endOf(lines, lost, (line: PullProgress | ({ done: true } & PulledImage)) => {
    if ("done" in line) return { ref: line.ref, digest: line.digest, size_bytes: line.size_bytes };
    onProgress(line);
    return undefined;
  });
}

/** Resolves when the machine is on the other host. */
export function readMove(
  lines: AsyncIterable<string>,
  onProgress: (progress: MoveProgress) => void = () => {},
): Promise<{ host: string }> {
  const lost =
    "The platform ended during the move. The machine is on one of the two hosts: see `hibernaut machine list`.";
  return endOf(lines, lost, (line: MoveProgress) => {
    onProgress(line);
    return line.step === "done" ? { host: line.host } : undefined;
  });
}

/** Resolves with what moved and what stayed. */
export function readHostDrain(
  lines: AsyncIterable<string>,
  onProgress: (progress: HostDrainProgress) => void = () => {},
): Promise<DrainedHost> {
  const lost = "The platform ended during the drain. Run it again: machines that have moved stay where they are.";
  return endOf(lines, lost, (line: HostDrainProgress | ({ done: true } & DrainedHost)) => {
    if ("done" in line) return { moved: line.moved, stayed: line.stayed };
    onProgress(line);
    return undefined;
  });
}

/** Resolves with how the command of a release ended. */
export function readReleaseCommand(
  lines: AsyncIterable<string>,
  onLine: (entry: LogEntry) => void = () => {},
): Promise<ReleaseCommandEnd> {
  const lost = "The platform ended before the release command did. The command was cancelled: deploy again.";
  return endOf(lines, lost, (line: LogEntry | ReleaseCommandEnd) => {
    if ("ok" in line) return line;
    onLine(line);
    return undefined;
  });
}

/**
 * Resolves with what `take` returns for the last line: before it, `take` returns nothing. Rejects with an `ApiError` when
 * a line is an error, or with `lost` as its message when the last line never comes.
 */
async function endOf<End>(
  lines: AsyncIterable<string>,
  lost: string,
  take: (line: never) => End | undefined,
): Promise<End> {
  for await (const text of lines) {
    const line = JSON.parse(text) as object;
    // The status was sent before anything went wrong.
    if ("error" in line) throw errorOf(200, text);
    const end = take(line as never);
    if (end) return end;
  }
  throw new ApiError({ code: "unavailable", message: lost });
}
