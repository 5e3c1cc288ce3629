/** The doing side of recovery: what is there, and how a guest is taken over. */
import type { GuestExit } from "../guest/protocol.ts";
import type { Vmm, VmmRef } from "../hypervisor/contract.ts";
import { messageOf } from "../lib/text.ts";
import type { MachineDependencies } from "./dependencies.ts";
import type { LiveGuest } from "./effects/context.ts";
import type { Observed, RecoveryPlan } from "./recovery.ts";
import type { MachineRecord } from "../domain/machine.ts";

/** Looks at the machine's VMM and snapshots. A VMM that does not answer, or a second one, is ended: it is of no use. */
export async function observe(
  deps: MachineDependencies,
  record: MachineRecord,
  refs: VmmRef[],
  signal: AbortSignal,
): Promise<{ vmm: Vmm | undefined; observed: Observed }> {
  const [ref, ...others] = refs;
  for (const other of others) await deps.hypervisor.end(other);
  let vmm: Vmm | undefined;
  let state: Observed["vmm"] = "none";
  if (ref !== undefined) {
    try {
      vmm = await deps.hypervisor.adopt(ref, signal);
      state = await vmm.state();
    } catch (error) {
      deps.log.warn({ machine: record.id, pid: ref.pid, reason: messageOf(error) }, "a VMM does not answer; ending it");
      vmm?.release();
      vmm = undefined;
      await deps.hypervisor.end(ref);
    }
  }
  return { vmm, observed: { vmm: state, published: await deps.snapshots.published(record.id) } };
}

/**
 * Makes an adopted guest go on. Returns how its app ended, if it did while nobody listened.
 * A guest whose start goes on is left to that: its agent may not be up yet.
 */
export async function takeOver(
  { vmm, agent }: LiveGuest,
  plan: Pick<RecoveryPlan, "vmm">,
  next: RecoveryPlan["next"],
  signal: AbortSignal,
): Promise<GuestExit | undefined> {
  if (plan.vmm === "wake") await vmm.run();
  if (next.kind === "effect" && next.effect === "boot") return undefined;
  const hello = await agent.hello(signal, { resync: true });
  if (plan.vmm === "wake") await agent.awake(signal);
  return hello.phase === "ended" ? hello.exit : undefined;
}
