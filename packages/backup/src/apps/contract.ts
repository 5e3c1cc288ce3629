/** Single apps out of backups, as the API uses them. */
import type { TargetView } from "../targets/contract.ts";
import type { WantedApp } from "./rules.ts";

/** Which set. Default: the newest of this platform. */
export interface SetChoice {
  set?: string | undefined;
  /** The newest that was made then or before, in milliseconds since 1970. */
  at?: number | undefined;
}

/** Restores single apps, and tries whether that would work. Calls reject with a HibernautError. */
export interface AppRestoreService {
  /**
   * Begins to restore an app. Rejects with `already_exists` when it would get in the way of one that is there, with
   * `invalid_argument` for a name that no app can have, and as the beginning of a backup does.
   */
  restore(target: string, wanted: WantedApp & SetChoice): Promise<TargetView>;
  /** Begins a drill of an app: by default, of the one whose last drill is the longest ago. */
  drill(target: string, wanted: { app?: string | undefined } & SetChoice): Promise<TargetView>;
}
