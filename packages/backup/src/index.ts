/** What other packages may use. */
export { Backups } from "./backups.ts";
export type { BackupService, BackupView } from "./contract.ts";
export type { BackupTargetService, NewTarget, SetView, TargetChanges, TargetView } from "./targets/contract.ts";
export { readTargets } from "./targets/read.ts";
export { startScheduler } from "./targets/scheduler.ts";
export { BackupTargets } from "./targets/targets.ts";
