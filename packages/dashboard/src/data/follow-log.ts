/** Reads a log, and continues where it was when the connection ends. */
import { ApiError, type BrowserClient, type LogEntry } from "@hibernaut/client/browser";
import { pause } from "./background.ts";
import type { LogChoice, LogLines } from "./log-lines.ts";

const FIRST_LINES = 500;
const RETRY_MS = 2_000;

interface FollowOptions {
  api: Pick<BrowserClient, "readLogs" | "followLogs">;
  app: string;
  choice: LogChoice;
  /** Where lines are added. */
  lines: LogLines;
  /** Continue with what comes, or only read what is there. */
  follow: boolean;
  signal: AbortSignal;
  /** Whether nothing more can come: whose log it is does not exist any more. */
  isGone(): boolean;
  /** Called after lines were added or forgotten. */
  onChange(): void;
  /** Called with what is wrong, and with undefined when it no longer is. */
  onError(error: unknown): void;
  /** In milliseconds. Default: 2 s. */
  retryMs?: number;
}

/** Adds lines as they come. Resolves when it is aborted, when nothing more can come, or when the platform refuses. */
export async function followLog(options: FollowOptions): Promise<void> {
  const { api, app, choice, lines, follow, signal, isGone, onChange, onError, retryMs = RETRY_MS } = options;
  let isLost = false;
  while (!signal.aborted) {
    try {
      const query = queryOf(choice, lines);
      onChange();
      // A reading ends, also when there are no lines. So it shows that the platform is there again.
      const entries: AsyncIterable<LogEntry> =
        follow && !isLost ? api.followLogs(app, { ...query, signal }) : api.readLogs(app, { ...query, signal });
      for await (const entry of entries) {
        lines.add(entry);
        onChange();
      }
      if (!follow) return onError(undefined);
      if (isLost) {
        isLost = false;
        onError(undefined);
        continue;
      }
      // A platform that ends in good order ends its replies, too: the next one continues.
    } catch (error) {
      if (signal.aborted) return;
      onError(error);
      if (!(error instanceof ApiError) || error.code !== "unavailable") return;
      isLost = true;
    }
    await pause(retryMs, signal);
    if (isGone()) return;
  }
}

function queryOf(choice: LogChoice, lines: LogLines) {
  const { machine, stream } = choice;
  const since = lines.continueWith(choice);
  return {
    ...(since === undefined ? { limit: FIRST_LINES } : { since }),
    ...(machine !== "" && { machine }),
    ...(stream !== "all" && { stream }),
  };
}
