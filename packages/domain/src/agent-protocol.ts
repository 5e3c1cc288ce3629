/**
 * Versions of the protocol between platform and agent, and which of them the platform still speaks. An agent stays in
 * the memory of its machine for as long as the machine sleeps, so the platform must understand agents of the past.
 */

/** What the present agent speaks: `PROTOCOL` in `packages/guest/agent/frame.h`. */
export const CURRENT_PROTOCOL = 6;

/** What an agent speaks whose bundle or snapshot does not say it: that was not recorded in version 0.1. */
export const UNRECORDED_PROTOCOL = 1;

/**
 * How many versions before the current one the platform speaks. Five, because version 0.1 speaks protocol 1, and a
 * machine that has slept since then must not lose its memory. Once a later version is released, two are enough.
 */
const OLDER_PROTOCOLS = 5;

/** The versions that a platform speaks whose own agent speaks `current`, oldest first. */
export function spokenProtocols(current = CURRENT_PROTOCOL): readonly number[] {
  const oldest = Math.max(1, current - OLDER_PROTOCOLS);
  return Array.from({ length: current - oldest + 1 }, (_, index) => oldest + index);
}

/**
 * Says why the platform cannot talk to an agent, such as `its agent speaks protocol 1, and this version of Hibernaut
 * speaks 2 to 6`. Undefined when it can.
 */
export function unspoken(protocol: number, current = CURRENT_PROTOCOL): string | undefined {
  const spoken = spokenProtocols(current);
  if (spoken.includes(protocol)) return undefined;
  return `its agent speaks protocol ${protocol}, and this version of Hibernaut speaks ${spoken[0]} to ${current}`;
}
