/** Warnings of builds. */
import { megabytes, style } from "../terminal.ts";
import { WARN_BYTES } from "./context.ts";
import type { Report } from "./job.ts";

/** Warns of a directory that probably has more than the app needs. */
export function warnOfSize(report: Report, bytes: number): void {
  if (bytes <= WARN_BYTES) return;
  report.say(
    `${style("yellow", "Warning:", process.stderr)} the directory has ${megabytes(bytes)} of files. List what the app does not need in .dockerignore.`,
  );
}
