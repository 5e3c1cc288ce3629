/** Tells the platform how a release goes: that it is still being deployed, and how it ended. */
import type { HibernautClient, Release } from "@hibernaut/client";
import { EXIT, toFailure } from "../failure.ts";

/** The platform takes a release for abandoned after a minute without a report. */
const REPORT_EVERY_MS = 15_000;
const MAX_DESCRIPTION = 500;

/** Does the work of a release, and reports meanwhile and at the end. Rejects with the error of the work. */
export async function reporting<T>(
  client: HibernautClient,
  { app, version }: { app: string; version: Release["version"] },
  work: () => Promise<T>,
): Promise<T> {
  // A report that fails is followed by the next. What the work itself asks for shows whether the platform is there.
  const report = () => {
    client.updateRelease(app, version, { status: "pending" }).catch(() => {});
  };
  const timer = setInterval(report, REPORT_EVERY_MS).unref();
  const interrupted = () => endInterrupted(client, { app, version });
  process.once("SIGINT", interrupted);
  try {
    const result = await work();
    await client.updateRelease(app, version, { status: "complete" });
    return result;
  } catch (error) {
    const [firstLine = ""] = toFailure(error).message.split("\n");
    const description = firstLine.replace(/ Last output:$/, "").slice(0, MAX_DESCRIPTION);
    // The original error counts, even when the platform cannot be told.
    await client.updateRelease(app, version, { status: "failed", description }).catch(() => {});
    throw error;
  } finally {
    clearInterval(timer);
    process.off("SIGINT", interrupted);
  }
}

/** After Ctrl-C: the next deploy need not wait until the release is abandoned. A second Ctrl-C ends the process at once. */
function endInterrupted(client: HibernautClient, { app, version }: { app: string; version: Release["version"] }): void {
  const description = "The deploy was interrupted.";
  client
    .updateRelease(app, version, { status: "failed", description })
    .catch(() => {})
    .finally(() => process.exit(EXIT.interrupted));
}
