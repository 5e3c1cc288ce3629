/** A fork begins with the memory of another machine: its guest is told who it is before anything of the app runs. */
import { servicePorts } from "@hibernaut/domain/config";
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { GuestAgent } from "@hibernaut/guest";
import { networkMachine } from "@hibernaut/network";
import { identityOf } from "../environment.ts";
import type { EffectPorts } from "./ports.ts";
import { imageOf } from "./spec.ts";

/**
 * Gives a newborn machine its identity; does nothing for others. Safe to repeat. Returns whether it has hooks to run now. Rejects when the guest does not take it: then
 * nothing of the app has run, and nothing may.
 */
export async function becomeItself(
  record: MachineRecord,
  agent: Pick<GuestAgent, "become">,
  ports: Pick<EffectPorts, "images" | "network" | "secrets" | "steps">,
  signal: AbortSignal,
): Promise<boolean> {
  if (record.newborn !== true) return false;
  const image = await imageOf(record, ports);
  const network = await ports.network.attach(networkMachine(record), servicePorts(record.config));
  const identity = identityOf(record, image.config, network, ports.secrets.environment(record.app));
  return (await ports.steps.time("become", () => agent.become(identity, signal))).hooks;
}
