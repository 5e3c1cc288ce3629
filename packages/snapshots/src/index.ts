/** What other packages may use. */
export { type SnapshotOrigin, type TakenFrom, takenFrom } from "./manifest.ts";
export { type FittingSnapshot, SnapshotStore } from "./store.ts";
