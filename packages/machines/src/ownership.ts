/**
 * Which machines are this host's, in a cluster. A host alone has none of this, and pays nothing for it. What is behind it
 * is in `cluster/ownership/`.
 */
import type { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";

/** A volume that another host has, with the volume's epoch there. A copy here that is not older is kept. */
export interface VolumeElsewhere {
  id: string;
  epoch: number;
}

/** What a comparison with the cluster's directory says about a machine that is stored here. */
export type Settled =
  /** It is this host's. The record has the epoch of that. */
  | { kind: "own"; record: MachineRecord }
  /** It is another host's, or destroyed; `host` is undefined then. Nothing of it may run here. */
  | {
      kind: "elsewhere";
      record: MachineRecord;
      host: string | undefined;
      epoch: number;
      /** Its volumes that are another host's, too. Others stay here, and no machine has them. */
      volumes: readonly VolumeElsewhere[];
    }
  /** The directory did not answer, or `why` says what is wrong with it. What runs runs on; the gate below decides about starts. */
  | { kind: "unknown"; record: MachineRecord; why?: string };

/** A machine that another host owns now, or that was destroyed there. */
export interface TakenAway {
  id: string;
  /** The owner. Undefined when the machine was destroyed. */
  host: string | undefined;
  /** The owner's. */
  epoch: number;
  /** For people: `it moved to host b`. */
  reason: string;
  /** Its volumes that are another host's, too. Others stay here, and no machine has them. */
  volumes: readonly VolumeElsewhere[];
  /** Whether the files go to quarantine; otherwise they are deleted, because the new owner has all of them. */
  keep: boolean;
}

/** Returns a free address of the network other than these. */
export type AnotherAddress = (taken: ReadonlySet<string>) => string;

export interface Ownership {
  /** The addresses that machines of the cluster have. */
  addresses(): Iterable<string>;
  /**
   * Claims a new machine, whose record is stored already, with its name and its address. Resolves with the record that is
   * this host's from then on. Rejects with `already_exists` when the app has a machine of that name, and with `unavailable`
   * when the directory does not answer. After a rejection the machine is not claimed, or its claim is being given back.
   */
  claim(record: MachineRecord, anotherAddress: AnotherAddress): Promise<MachineRecord>;
  /** The machine was destroyed: its claim is given back, however long that takes. */
  release(record: MachineRecord): void;
  /** The machine has a new version: what another host would need to start it without this one. */
  publish(record: MachineRecord): void;
  /** Claims another address for a machine, whose own does not belong to the network. */
  readdress(record: MachineRecord, anotherAddress: AnotherAddress): Promise<string>;
  /** Why the machine may not start now, as far as this host knows. Costs nothing. */
  refusal(machineId: string): HibernautError | undefined;
  /**
   * The same, after the directory was asked if it was not during this host's present lease. Rejects with the signal's
   * reason.
   */
  verify(machineId: string, signal: AbortSignal): Promise<HibernautError | undefined>;
  /** Compares what is stored here with the directory, before anything of it is touched. Never rejects. */
  settle(records: readonly MachineRecord[], anotherAddress: AnotherAddress): Promise<Settled[]>;
}
