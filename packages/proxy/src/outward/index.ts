/** Connections of machines to names outside that their rules allow. */
export { type Gate, openGate } from "./gate.ts";
export { reachFrom } from "./reach.ts";
