/** What other packages may use. */
export { Backups } from "./backups.ts";
export type { BackupService, BackupView } from "./contract.ts";
