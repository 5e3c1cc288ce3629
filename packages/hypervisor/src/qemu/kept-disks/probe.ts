/** Whether a disk is still kept: QEMU gives up for the guest's sake, and tells only who reads what was kept. */
import { setTimeout as delay } from "node:timers/promises";
import type { Qmp } from "../qmp.ts";
import type { DiskNode } from "./nodes.ts";

/** What is read. */
const BYTES = 512;
const POLL_MS = 5;

interface Job {
  id: string;
  status: string;
  error?: string;
}

/** Reads a little of what was kept. Rejects with QEMU's reason when it is lost. */
export async function requireKept(qmp: Qmp, { number }: DiskNode, signal: AbortSignal): Promise<void> {
  const [view, nowhere, id] = [`kept-view-${number}`, `kept-void-${number}`, `kept-probe-${number}`];
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
    const { error } = await concluded(qmp, id, signal);
    if (error !== undefined) throw new Error(error);
  } finally {
    for (const name of [view, nowhere]) await qmp.execute("blockdev-del", { "node-name": name });
  }
}

async function concluded(qmp: Qmp, id: string, signal: AbortSignal): Promise<Job> {
  for (;;) {
    const job = (await qmp.execute<Job[]>("query-jobs")).find((each) => each.id === id);
    if (job === undefined) throw new Error("QEMU has lost the job that reads what was kept");
    if (job.status === "concluded") {
      await qmp.execute("job-dismiss", { id });
      return job;
    }
    await delay(POLL_MS, undefined, { signal });
  }
}
