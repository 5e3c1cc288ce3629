/** Recognizes machines that an interrupted deploy has left. Pure. */
import type { Machine, MachineConfig } from "@hibernaut/client";

/** The metadata key of a machine that only shows whether the new version works. */
export const CANARY_METADATA = "hibernaut_canary";
/** The metadata key that names the machine whose place a new one takes. It does not count as a change. */
export const REPLACES_METADATA = "hibernaut_replaces";

/**
 * Machines that a deploy which was cut off has left: new ones that never got requests, and old ones whose place has been
 * taken. A machine whose predecessor is gone got requests once: if it is cordoned, its owner did that.
 */
export function leftovers(machines: readonly Machine[]): Machine[] {
  const present = new Set(machines.map(({ id }) => id));
  const taken = new Set(machines.filter(({ cordoned }) => !cordoned).map(predecessor));
  return machines.filter((machine) => {
    const { id, cordoned, config } = machine;
    const isCanary = config.metadata?.[CANARY_METADATA] !== undefined;
    const isWaiting = present.has(predecessor(machine) ?? "");
    return (cordoned && (isCanary || isWaiting)) || taken.has(id);
  });
}

/** The configuration for another machine, which takes nobody's place. */
export function withoutPredecessor({ metadata, ...config }: MachineConfig): MachineConfig {
  if (metadata === undefined) return config;
  const { [REPLACES_METADATA]: _replaced, ...others } = metadata;
  return { ...config, metadata: others };
}

/** The ID of the machine whose place this one takes. */
function predecessor({ config }: Machine): string | undefined {
  return config.metadata?.[REPLACES_METADATA];
}
