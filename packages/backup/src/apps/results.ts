/** What restores and drills of single apps found, as it is stored with their target. Times are RFC 3339. */
import type { RestoredMachine } from "@hibernaut/machines";
import type { DrillCount, DrilledMachine, DrillOutcome } from "./verdict.ts";

/** How the latest restore of an app from a target ended. */
export interface LastRestore {
  startedAt: string;
  endedAt: string;
  app: string;
  /** The app that it became. */
  as: string;
  /** The set, and when it was made; null when it failed before that was known. */
  set: string | null;
  setAt: string | null;
  machines: RestoredMachine[];
  /** Ids of the new volumes. */
  volumes: string[];
  /** Ids of the machines whose place was taken: they are cordoned, and have what they had. */
  replaced: string[];
  error: { code: string; message: string } | null;
}

/** How the latest drill of an app ended. */
export interface Drill {
  startedAt: string;
  endedAt: string;
  app: string;
  set: string | null;
  setAt: string | null;
  machines: DrilledMachine[];
  counts: DrillCount[];
  outcome: DrillOutcome;
  /** Why it failed; null if it did not. */
  error: { code: string; message: string } | null;
}
