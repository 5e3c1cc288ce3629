/** The part of a logger that moves use. */
import type { WarnLog } from "../ownership/retry.ts";

export interface MoveLog extends WarnLog {
  info(fields: Record<string, unknown>, message: string): void;
}
