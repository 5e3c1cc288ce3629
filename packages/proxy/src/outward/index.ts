/** Connections of machines to names outside that their rules allow. */
export { type OutwardAuthority, openAuthority } from "./authority.ts";
export type { Credentials } from "./credentials.ts";
export { openGate } from "./gate.ts";
export { reachFrom } from "./reach.ts";
