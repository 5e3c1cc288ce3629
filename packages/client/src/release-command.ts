/** Reads the reply of a release command. */
import { ApiError } from "./error.ts";
import type { LogEntry, ReleaseCommandEnd } from "./types.ts";

/** Resolves with the last line, which says how the command ended. Rejects with an `ApiError` if it never comes. */
export async function readReleaseCommand(
  lines: AsyncIterable<string>,
  onLine: (entry: LogEntry) => void = () => {},
): Promise<ReleaseCommandEnd> {
  for await (const text of lines) {
    const line = JSON.parse(text) as LogEntry | ReleaseCommandEnd;
    if ("ok" in line) return line;
    onLine(line);
  }
  const message = "The platform ended before the release command did. The command was cancelled: deploy again.";
  throw new ApiError({ code: "unavailable", message });
}
