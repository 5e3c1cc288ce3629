/** Whether a disk is still kept: QEMU gives up for the guest's sake, and tells only who reads what was kept. */
import { setTimeout as delay } from "node:timers/promises";
import { within } from "@hibernaut/lib/async";
import type { Qmp } from "../qmp.ts";

/** What is read. */
const BYTES = 512;
const POLL_MS = 5;
/** How long QEMU may take to read it, and to end a job, in milliseconds: it waits at most a few seconds for the platform. */
const JOB_MS = 30_000;
/** What the ids of jobs that read begin with. No other job gets the same id before a job is dismissed. */
const JOB_IDS = "kept-probe-";
let jobs = 0;

interface Job {
  id: string;
  status: string;
  error?: string;
}

/** Reads a little of what was kept. Rejects with QEMU's reason when it is lost. */
export async function requireKept(qmp: Qmp, { number }: { number: string }, signal: AbortSignal): Promise<void> {
  const [view, nowhere, id] = [`kept-view-${number}`, `kept-void-${number}`, `${JOB_IDS}${(jobs += 1)}`];
  const file = `kept-access-${number}`;
  // The driver is named: what is on the disk is the guest's, and must not choose it.
  await qmp.execute("blockdev-add", {
    driver: "raw",
    "node-name": view,
    file,
    offset: 0,
    size: BYTES,
    "read-only": true,
  });
  await qmp.execute("blockdev-add", { driver: "null-co", "node-name": nowhere, size: BYTES });
  try {
    const job = { "job-id": id, device: view, target: nowhere, sync: "full", "auto-dismiss": false };
    await qmp.execute("blockdev-backup", job);
    const { error } = await concluded(qmp, id, within(signal, JOB_MS, "reading what was kept"));
    if (error !== undefined) throw new Error(error);
  } finally {
    await endProbes(qmp);
    for (const name of [view, nowhere]) await qmp.execute("blockdev-del", { "node-name": name });
  }
}

/** Ends the jobs that read what was kept, also those of an earlier platform: nodes that they use cannot be taken away. */
export async function endProbes(qmp: Qmp): Promise<void> {
  const limit = AbortSignal.timeout(JOB_MS);
  const left = (await qmp.execute<Job[]>("query-jobs")).filter(({ id }) => id.startsWith(JOB_IDS));
  for (const { id, status } of left) {
    // One that has just concluded cannot be cancelled.
    if (status !== "concluded") await qmp.execute("job-cancel", { id }).catch(() => {});
    await concluded(qmp, id, limit);
    await qmp.execute("job-dismiss", { id });
  }
}

async function concluded(qmp: Qmp, id: string, signal: AbortSignal): Promise<Job> {
  for (;;) {
    const job = (await qmp.execute<Job[]>("query-jobs")).find((each) => each.id === id);
    if (job === undefined) throw new Error("QEMU has lost the job that reads what was kept");
    if (job.status === "concluded") return job;
    await delay(POLL_MS, undefined, { signal });
  }
}
