/** Single apps out of backups, as the API uses them. */
import type { Choice } from "../targets/choose.ts";
import type { TargetView } from "../targets/contract.ts";
import type { WantedApp } from "./rules.ts";

/** Restores single apps, and tries whether that would work. Calls reject with a HibernautError. */
export interface AppRestoreService {
  /**
   * Begins to restore an app. Rejects with `already_exists` when it would get in the way of one that is there, with
   * `invalid_argument` for a name that no app can have, and as the beginning of a backup does.
   */
  restore(target: string, wanted: WantedApp & Choice): Promise<TargetView>;
  /** Begins a drill of an app: by default, of the one whose last drill is the longest ago. */
  drill(target: string, wanted: { app?: string | undefined } & Choice): Promise<TargetView>;
}
