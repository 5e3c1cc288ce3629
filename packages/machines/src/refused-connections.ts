/** Which of the connections that machines were refused their histories tell. Pure. */

/** A machine whose guest tries a thousand destinations has a history that can still be read. */
export const MOST_TOLD = 20;
/** After this, in milliseconds, a machine's refusals are told again, also those of destinations that were told before. */
export const TOLD_FOR_MS = 600_000;

/** What a machine was kept from. */
export interface RefusedConnection {
  /** An address, or a name. */
  destination: string;
  /** `dns`: it asked for the name. */
  protocol: "tcp" | "udp" | "dns";
  port?: number;
}

interface Told {
  since: number;
  keys: Set<string>;
}

export class RefusedConnections {
  readonly #told = new Map<string, Told>();

  /** Returns what the history of the machine has to tell of this refusal. Undefined when nothing. */
  add(machineId: string, refused: RefusedConnection, now: number): Record<string, unknown> | undefined {
    for (const [id, { since }] of this.#told) {
      if (now - since < TOLD_FOR_MS) break; // in the order of their times
      this.#told.delete(id);
    }
    const told = this.#told.get(machineId) ?? { since: now, keys: new Set() };
    this.#told.set(machineId, told);
    const key = `${refused.protocol} ${refused.destination} ${refused.port ?? ""}`;
    if (told.keys.has(key) || told.keys.size >= MOST_TOLD) return undefined;
    told.keys.add(key);
    const isLast = told.keys.size === MOST_TOLD;
    return { ...refused, ...(isLast && { more_from: new Date(told.since + TOLD_FOR_MS).toISOString() }) };
  }
}
