/** Which connections of a machine the platform carries, so that they end with it. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { EffectPorts } from "./ports.ts";

/**
 * Those between the machine and apps of its network, if it is in one. All connections to its services come from the gateway, also those
 * of proxies in processes of their own: they live on without the platform, so none is ended there.
 */
export function carriedFor(
  { app }: Pick<MachineRecord, "app">,
  { store, settings }: Pick<EffectPorts, "store" | "settings">,
): "outward" | "both" | undefined {
  if (store.apps.get(app)?.network === undefined) return undefined;
  return settings.proxy === "inside" ? "both" : "outward";
}
