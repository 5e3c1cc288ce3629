/**
 * Guests that run on while their platform is stopped. Nobody would end them when others recreate their machines, and so
 * others are told not to.
 */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { VmmRef } from "@hibernaut/hypervisor";
import { messageOf } from "@hibernaut/lib/text";
import type { Cluster } from "../cluster.ts";
import { KEYS, type MemberRecord } from "../keys.ts";
import type { WarnLog } from "../ownership/retry.ts";
import { put, read } from "../stored.ts";
import { mayBeRecreated } from "./lost-hosts.ts";

/** How long the end of the platform waits for the directory, in milliseconds. */
const TELL_MS = 3_000;
/** Tries to change the member record while something else changes it. */
const MOST_RACES = 3;

interface LeaveOptions {
  cluster: Pick<Cluster, "directory" | "view" | "host">;
  records(): MachineRecord[];
  hypervisor: { find(): Promise<VmmRef[]>; end(ref: VmmRef): Promise<void> };
  log: WarnLog;
}

/**
 * Tells the cluster that this host's platform was stopped while machines run on that others may recreate. If that cannot be
 * told, those guests end, as when the host is lost. Call it when nothing starts any more, before the lease ends. Never
 * rejects.
 */
export async function leaveGuests({ cluster, records, hypervisor, log }: LeaveOptions): Promise<void> {
  try {
    const recreated = records().filter((record) => mayBeRecreated(record, cluster.view));
    const ids = new Set(recreated.map(({ id }) => id));
    const guests = ids.size === 0 ? [] : (await hypervisor.find()).filter(({ machineId }) => ids.has(machineId));
    if (guests.length === 0) return;
    const left = [...new Set(guests.map(({ machineId }) => machineId))];
    const told = await tell(left, cluster, AbortSignal.timeout(TELL_MS)).catch((error: unknown) => {
      const reason = messageOf(error);
      log.warn({ reason, guests: guests.length }, "guests end, because other hosts may recreate their machines");
      return false;
    });
    if (told) return;
    for (const guest of guests)
      await hypervisor.end(guest).catch((error: unknown) => {
        log.warn({ machine: guest.machineId, reason: messageOf(error) }, "a guest could not be ended");
      });
  } catch (error) {
    log.warn({ reason: messageOf(error) }, "guests that other hosts may recreate could not be looked after");
  }
}

async function tell(
  left: string[],
  { directory, host }: LeaveOptions["cluster"],
  signal: AbortSignal,
): Promise<boolean> {
  const key = `${KEYS.members}${host}`;
  for (let race = 0; race < MOST_RACES; race += 1) {
    const before = await read<MemberRecord>(directory, key, signal);
    // It was removed from the cluster: it has no machines.
    if (before === undefined) return false;
    const member: MemberRecord = { ...before.value, stoppedAt: new Date().toISOString(), left };
    if ((await directory.transact([before], [put(key, member)], signal)) !== undefined) return true;
  }
  throw new Error("this host's member record was changed at the same time");
}
