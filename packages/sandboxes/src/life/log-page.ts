/** Pages of logs: of a sandbox, and of the build of a template. Pure. */
import { BUILD_LOG_LEVELS, type BuildLogLevel } from "@hibernaut/domain/build";

/** What a client asks for. */
interface LogPageQuery {
  /** In milliseconds since 1970: where to begin. Default: at the end that the direction begins with. */
  cursor?: number;
  /** Default: `forward`, the oldest first. */
  direction?: "forward" | "backward";
  /** The least important that are wanted. Default: all. */
  level?: BuildLogLevel;
  /** Only messages with this in them. */
  search?: string;
  limit: number;
}

interface Entry {
  /** RFC 3339. */
  timestamp: string;
  level: BuildLogLevel;
  message: string;
}

/** Returns the entries that a query asks for, of some that are in the order of time. */
export function logPage<T extends Entry>(
  entries: readonly T[],
  { cursor, direction = "forward", level = "debug", search = "", limit }: LogPageQuery,
): T[] {
  const least = BUILD_LOG_LEVELS.indexOf(level);
  const isForward = direction === "forward";
  const wanted = entries.filter((entry) => {
    const at = Date.parse(entry.timestamp);
    if (cursor !== undefined && (isForward ? at < cursor : at > cursor)) return false;
    return BUILD_LOG_LEVELS.indexOf(entry.level) >= least && entry.message.includes(search);
  });
  return (isForward ? wanted : wanted.toReversed()).slice(0, limit);
}
