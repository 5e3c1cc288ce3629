/** What is timed of a machine's starts and suspends, for metrics and traces. */
import type { BootKind } from "./machine.ts";

/** The steps of a start. Which of them there are depends on how the machine comes up; a few overlap. */
export const START_STEPS = [
  /** Memory on the host is found, or made free. */
  "room",
  /** The snapshot, or the kept VMM, is checked. */
  "check",
  /** A memory that others have, too, is copied, where QEMU cannot begin with the same file. */
  "copy",
  /** QEMU starts, until it takes commands. */
  "qemu",
  /** QEMU loads the device state, once the snapshot is checked. */
  "load",
  /** The platform connects to the agent. */
  "attach",
  /** The snapshot is marked as consumed, on the disk. */
  "consume",
  /** The CPUs run, and the agent answers. */
  "awake",
  /** The guest of a fork becomes a machine of its own; part of "awake". */
  "become",
  /** The app's hooks run. */
  "hooks",
  /** A cold start waits for its turn. */
  "slot",
  /** The files of a cold start are made. */
  "prepare",
  /** QEMU boots the kernel, until the agent answers. */
  "boot",
  /** The agent starts the app. */
  "app",
  /** The app begins to listen. */
  "ready",
] as const;

/** The steps of a suspend, in order. */
export const SUSPEND_STEPS = [
  /** A memory that others have, too, is copied, while the guest runs. */
  "copy",
  /** The app gets ready. */
  "prepare",
  /** The agent freezes the app and flushes the disks. */
  "quiesce",
  /** The CPUs stop. */
  "pause",
  /** The device state is written, and the memory is flushed. */
  "save",
  /** The writable layer is flushed, if the machine has swap. */
  "flush",
  /** The snapshot is published. */
  "publish",
  /** QEMU ends, or is kept. */
  "leave",
] as const;

type StepName = (typeof START_STEPS)[number] | (typeof SUSPEND_STEPS)[number];

/** One step, on the clock of `performance.now()`. */
export interface Step {
  name: StepName;
  began: number;
  ended: number;
}

/** How an operation ended. `app_ended`: the app did, before the start was over. `cancelled`: something else took its place. */
export const OPERATION_OUTCOMES = ["ok", "app_ended", "failed", "cancelled"] as const;

/** A start or a suspend that is over. */
export interface Operation {
  type: "start" | "suspend";
  machineId: string;
  app: string;
  outcome: (typeof OPERATION_OUTCOMES)[number];
  /** How the machine came up. Undefined for a suspend, and for a start that failed before that was known. */
  kind: BootKind | undefined;
  /** Why the start was cold, or why the operation failed; `snapshot` for a resume. */
  reason: string | undefined;
  /** When it began and ended, on the clock of `performance.now()`. */
  began: number;
  ended: number;
  steps: readonly Step[];
}

/** Times the steps of one operation. One that fails counts as well. */
export class Steps {
  readonly began = performance.now();
  readonly all: Step[] = [];

  /** Does the work of a step. */
  async time<T>(name: StepName, work: () => Promise<T> | T): Promise<T> {
    const began = performance.now();
    try {
      return await work();
    } finally {
      this.add(name, began);
    }
  }

  /** Adds a step that was timed otherwise; by default, it ends now. */
  add(name: StepName, began: number, ended = performance.now()): void {
    this.all.push({ name, began, ended });
  }
}
