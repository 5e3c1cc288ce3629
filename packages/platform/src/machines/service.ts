/** What the API, the proxy and the command line may ask of machines: the only door to them. */
import type { MachineConfig } from "./config.ts";
import type { AppRecord, CreateMachine, Eligibility, MachineEvent, MachineRecord, MachineState } from "./types.ts";

/** States that `wait` can wait for; `settled` is any resting state. */
export type WaitTarget = "running" | "stopped" | "suspended" | "destroyed" | "failed" | "created" | "settled";

/** A machine as others see it. */
export interface MachineView {
  record: MachineRecord;
  suspend: Eligibility;
  /** The image reference as configured, and what it resolved to. */
  image: { ref: string; digest: string };
}

/**
 * Every call rejects (or throws) with a HibernautError. Actions return once the intent is stored;
 * the work goes on after, and `wait` observes it.
 */
export interface MachineService {
  createApp(name: string): AppRecord;
  listApps(): AppRecord[];
  getApp(name: string): AppRecord;
  /** `failed_precondition` while the app has machines, unless `force`, which destroys them first. */
  deleteApp(name: string, options?: { force?: boolean }): Promise<void>;

  create(app: string, input: CreateMachine): Promise<MachineView>;
  list(app: string): MachineView[];
  get(app: string, id: string): MachineView;
  events(app: string, id: string, limit: number): MachineEvent[];
  /** A full new configuration; without one, the machine moves to the current guest bundle and nothing else changes. */
  update(app: string, id: string, config?: MachineConfig): Promise<MachineView>;
  start(app: string, id: string): { previousState: MachineState };
  suspend(app: string, id: string): void;
  stop(app: string, id: string): void;
  restart(app: string, id: string): void;
  destroy(app: string, id: string, options?: { force?: boolean }): void;
  /**
   * Settles when one of the states was reached, even if the machine has already left it again.
   * Rejects with `deadline_exceeded` after `timeoutMs`, or `failed_precondition` once the machine
   * is destroyed and so can never get there.
   */
  wait(
    app: string,
    id: string,
    targets: WaitTarget[],
    options: { timeoutMs: number; signal?: AbortSignal },
  ): Promise<MachineState>;
}
