/** Whether backups are made where they should be. */
import type { TargetView } from "@hibernaut/backup";
import { run } from "@hibernaut/lib/exec";
import { messageOf } from "@hibernaut/lib/text";
import type { Settings } from "@hibernaut/settings";
import type { Diagnosis } from "./diagnosis.ts";

/** How long restic may take to tell its version, in milliseconds. */
const RESTIC_TIMEOUT_MS = 10_000;

/** Says nothing where no target was added. */
export async function* checkBackups({
  dataDir,
  restic,
}: Pick<Settings, "dataDir" | "restic">): AsyncIterable<Diagnosis> {
  const name = "backups";
  try {
    const { readTargets } = await import("@hibernaut/backup");
    const targets = await readTargets(dataDir);
    if (targets.length === 0) return;
    yield await checkRestic(restic);
    const bad = targets.filter(
      ({ overdue, last, lastCheck }) =>
        overdue || last?.state === "failed" || (last?.changed ?? []).length > 0 || lastCheck?.error,
    );
    const [first] = bad;
    if (first === undefined) {
      yield { name, status: "ok", found: `${targets.length} targets, and none has failed` };
      return;
    }
    const reason = reasonOf(first);
    const good = first.lastSuccess === null ? "there is none" : `the latest good one is of ${first.lastSuccess.at}`;
    const found = `${bad.map((target) => target.name).join(", ")}: ${reason} For ${first.name}, ${good}.`;
    yield { name, status: "warn", found, fix: `hibernaut backup run --target ${first.name}` };
  } catch (error) {
    yield { name, status: "warn", found: `the targets cannot be read: ${messageOf(error)}` };
  }
}

function reasonOf({ last, lastCheck, overdue }: TargetView): string {
  const failed = lastCheck?.error?.message ?? last?.error?.message;
  if (failed !== undefined) return failed;
  if (overdue) return "no backup came when one was due.";
  return `${last?.changed[0] ?? "something"} never changes, and is not what an earlier backup has: one of the two is damaged.`;
}

async function checkRestic(program: string): Promise<Diagnosis> {
  const name = "restic";
  try {
    const { stdout } = await run(program, ["version"], { timeoutMs: RESTIC_TIMEOUT_MS });
    return { name, status: "ok", found: stdout.trim() };
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
    const found = missing ? "not installed; it stores backups at targets" : messageOf(error);
    return { name, status: "fail", found, fix: "apt-get install -y restic" };
  }
}
