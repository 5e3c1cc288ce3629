/** Reading machines without being their platform. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { isThereSync } from "@hibernaut/lib/absence";
import Sqlite from "better-sqlite3";
import { fromRow, LIST_MACHINES, type MachineRow } from "./machines.ts";

/**
 * Returns the machines of a database that a platform may have open, without changing it. Empty when there is no
 * database, or one in which no platform has stored anything. Throws when it cannot be read.
 */
export function readMachines(file: string): MachineRecord[] {
  if (!isThereSync(file)) return [];
  const db = new Sqlite(file, { readonly: true });
  try {
    const table = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'machines'").get();
    return table === undefined ? [] : db.prepare<[], MachineRow>(LIST_MACHINES).all().map(fromRow);
  } finally {
    db.close();
  }
}
