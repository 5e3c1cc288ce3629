/** The doing side of recovery: look at the host, and take over what runs there. */
import { servicePorts } from "@hibernaut/domain/config";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { type Vmm, VmmFailed, VmmHeld, type VmmRef } from "@hibernaut/hypervisor";
import { isHostTrouble } from "@hibernaut/lib/absence";
import { messageOf } from "@hibernaut/lib/text";
import type { FoundOnHost, TakenOver, TakeOver } from "../decide/index.ts";
import type { Logger } from "../dependencies.ts";
import { becomeItself } from "./become.ts";
import { carriedFor } from "./carried.ts";
import type { EffectPorts } from "./ports.ts";

type ObservePorts = Pick<EffectPorts, "hypervisor" | "snapshots" | "secrets" | "log">;

interface Observed {
  found: FoundOnHost;
  /** The VMM that `found` tells of. */
  vmm: Vmm | undefined;
}

/**
 * Looks at the machine's VMM and snapshots. A VMM that does not answer, or a second one, is useless and ended, once it is
 * known which one answers.
 */
export async function observe(
  { record, refs }: { record: MachineRecord; refs: readonly VmmRef[] },
  { hypervisor, snapshots, secrets, log }: ObservePorts,
  signal: AbortSignal,
): Promise<Observed> {
  let vmm: Vmm | undefined;
  let state: FoundOnHost["vmm"] = "none";
  let failure: string | undefined;
  for (const ref of refs) {
    try {
      vmm = await hypervisor.adopt(ref, signal);
      state = await vmm.state();
      break;
    } catch (error) {
      // It is not known whether it answers.
      if (isHostTrouble(error)) throw error;
      if (error instanceof VmmFailed) failure = error.message;
      const what = failure === undefined ? "a VMM does not answer; ending it" : "the guest of a VMM could not continue";
      log.warn({ machine: record.id, pid: ref.pid, reason: messageOf(error) }, what);
      vmm?.release();
      vmm = undefined;
      if (failure !== undefined) break;
    }
  }
  for (const ref of refs) if (ref.pid !== vmm?.ref.pid) await unlessHeld(hypervisor.end(ref), log);
  const published = await snapshots.published(record.id);
  const { capturing } = record;
  const taken =
    capturing !== null && published.includes(capturing) ? await snapshots.describe(record.id, capturing) : undefined;
  const captured = taken === undefined ? null : { ...taken, secrets: secrets.version(record.app) };
  const found: FoundOnHost = { type: "found", vmm: state, published, captured };
  return { vmm, found: failure === undefined ? found : { ...found, failure } };
}

/**
 * Waits for the end of a VMM that was killed. Resolves with false when the kernel holds it: that is logged, and is in the
 * way of its own machine only.
 */
export async function unlessHeld(end: Promise<unknown>, log: Logger): Promise<boolean> {
  try {
    await end;
    return true;
  } catch (error) {
    if (!(error instanceof VmmHeld)) throw error;
    const { machineId: machine, pid } = error.ref;
    log.warn({ machine, pid, reason: error.message }, "a VMM was killed and has not ended");
    return false;
  }
}

interface TakeOverInput {
  record: MachineRecord;
  effect: TakeOver;
  /** The VMM that was found. */
  vmm: Vmm | undefined;
}

/** Makes the guest run on, or ends it, and discards what no record names. */
export async function takeOver(
  { record, effect, vmm }: TakeOverInput,
  ports: Pick<
    EffectPorts,
    "snapshots" | "files" | "guest" | "log" | "images" | "network" | "secrets" | "steps" | "store" | "settings"
  >,
  signal: AbortSignal,
): Promise<TakenOver> {
  const { guest, snapshots, log } = ports;
  const taken: TakenOver = { type: "taken_over", guest: "none", next: effect.next };
  if (effect.vmm === "kill" && vmm !== undefined) await unlessHeld(vmm.kill(), log);
  if (vmm !== undefined && (effect.vmm === "adopt" || effect.vmm === "wake")) {
    const unreachable = record.state === "running" ? (record.unreachable ?? undefined) : undefined;
    try {
      const { agent } = await guest.attach(vmm, servicePorts(record.config), unreachable);
      if (effect.vmm === "wake") await vmm.run();
      if (effect.hello) {
        const hello = await agent.hello(signal, { resync: true });
        if (effect.vmm === "wake") {
          await becomeItself(record, agent, ports, signal);
          await agent.awake(signal, { carried: carriedFor(record, ports) });
        }
        if (hello.phase === "ended") guest.rememberExit(hello.exit);
      }
      taken.guest = "adopted";
      if (guest.exit !== undefined) taken.exit = guest.exit;
    } catch (error) {
      log.warn({ machine: record.id, reason: messageOf(error) }, "a guest could not be adopted");
      await unlessHeld(guest.kill(), log);
      taken.guest = "unreachable";
    }
  }
  const hasVmm = vmm !== undefined && effect.vmm !== "kill" && taken.guest !== "unreachable";
  await ports.files.forgetBeside(record.id, { hasVmm });
  if (record.state !== "destroyed") await snapshots.discardOthers(record.id, effect.keep ?? undefined);
  return taken;
}
