/** What other packages may use. */
export { type AppHome, AppRestores } from "./apps/app-restores.ts";
export type { Drill, LastRestore } from "./apps/results.ts";
export { Backups } from "./backups.ts";
export type { BackupService, BackupView } from "./contract.ts";
export type { BackupTargetService, SetView, TargetView } from "./targets/contract.ts";
export { readTargets } from "./targets/read.ts";
export { startScheduler } from "./targets/scheduler.ts";
export { BackupTargets } from "./targets/targets.ts";
