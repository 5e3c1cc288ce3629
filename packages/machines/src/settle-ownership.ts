/** What a host finds out about its machines before it touches any of them. */
import { freeAddress } from "./address.ts";
import type { MachineDependencies } from "./dependencies.ts";
import { unlessHeld } from "./effects/recover.ts";
import { forget } from "./forget.ts";
import type { Settled } from "./ownership.ts";

/**
 * Compares what is stored with the cluster, before anything of it is touched: what is another host's ends, and goes to
 * quarantine.
 */
export async function settleOwnership(deps: MachineDependencies): Promise<void> {
  const { ownership, store, hypervisor, network, log } = deps;
  if (ownership === undefined) return;
  const settled: readonly Settled[] = await ownership.settle(store.machines.list(), (taken) =>
    freeAddress(deps, taken),
  );
  const refs = await hypervisor.find();
  for (const one of settled) {
    const stored = store.machines.get(one.record.id);
    const { epoch: known, address, disputed } = one.record;
    const isSame = known === stored?.epoch && address === stored?.address && disputed === stored?.disputed;
    if (one.kind === "own" && !isSame) store.machines.update(one.record);
    if (one.kind !== "elsewhere") continue;
    const { record, host, epoch, volumes } = one;
    const reason = host === undefined ? "it was destroyed in the cluster" : `host ${host} owns it now`;
    log.warn({ machine: record.id, reason }, "a machine is no longer this host's; it ends here");
    const ends = refs
      .filter(({ machineId }) => machineId === record.id)
      .map((ref) => unlessHeld(hypervisor.end(ref), log));
    // What is stored of it stays until then: it is looked at again once the platform runs.
    if ((await Promise.all(ends)).includes(false)) continue;
    await network.detach(record.id);
    await forget(record, { host, epoch, volumes, reason, keep: true }, deps);
  }
}
