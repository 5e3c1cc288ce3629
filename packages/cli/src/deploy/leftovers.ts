/** Recognizes machines that an interrupted deploy has left. Pure. */
import type { Machine } from "@hibernaut/client";

/** The metadata key of a machine that only shows whether the new version works. */
export const CANARY_METADATA = "hibernaut_canary";
/** The metadata key that names the machine whose place a new one takes. It does not count as a change. */
export const REPLACES_METADATA = "hibernaut_replaces";

/**
 * Machines that a deploy which was cut off has left: new ones that never got requests, and old ones whose place has been
 * taken.
 */
export function leftovers(machines: readonly Machine[]): Machine[] {
  const taken = new Set(
    machines.filter(({ cordoned }) => !cordoned).map(({ config }) => config.metadata?.[REPLACES_METADATA]),
  );
  return machines.filter(({ id, cordoned, config: { metadata = {} } }) => {
    const isNew = CANARY_METADATA in metadata || REPLACES_METADATA in metadata;
    return (cordoned && isNew) || taken.has(id);
  });
}
