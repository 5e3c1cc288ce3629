/** The record that is stored about a template. */
import type { MachineRecord } from "./machine.ts";

/** The state of a machine that is kept, and never changes: machines are born from it. */
export interface TemplateRecord {
  /** 14 hex digits. */
  id: string;
  app: string;
  /** Unique within the app. */
  name: string;
  /** RFC 3339. */
  createdAt: string;
  /** What its files take on the disk. */
  sizeBytes: number;
  /** How many machines are kept asleep, ready to be taken. Not part of what never changes. */
  warmPool: number;
  /** It was copied from another host of the cluster. Absent on the host that made it. */
  copied?: true;
  /** The machine whose state it is, asleep with that snapshot. It may be gone. */
  machine: MachineRecord;
}
