/** Events of the stream that are about anything but a machine. */
import type { StreamFact } from "@hibernaut/domain/stream-event";

/** Returns an event of now. */
export function factOf(type: string, app: string | null, data: StreamFact["data"] = {}): StreamFact {
  return { type, at: new Date().toISOString(), app, machine: null, data };
}
