/** What the API, the proxy and the command line may ask of machines: the only door to them. */
import type { GuestCommand } from "../guest/command.ts";
import type { CommandSpec } from "../guest/protocol.ts";
import type { MachineConfig } from "../domain/config.ts";
import type { SecretSummary } from "../secrets/contract.ts";
import type { InsideListener } from "./inside.ts";
import type { LogEntry } from "./logs/entry.ts";
import type { LogQuery } from "./logs/query.ts";
import type {
  AppRecord,
  CreateMachine,
  Eligibility,
  KeepAwake,
  MachineEvent,
  MachineRecord,
  MachineState,
  ReleaseRecord,
  RestingState,
} from "../domain/machine.ts";

/** States that `wait` can wait for; `settled` is any resting state. */
export type WaitTarget = RestingState | "destroyed" | "settled";

/** What one check of a machine last found. */
export interface CheckResult {
  name: string;
  /** `warning`: it has not passed yet, within its grace period. */
  status: "passing" | "warning" | "critical";
  output: string;
  /** RFC 3339. */
  updated_at: string;
}

/** What a change of an app's secrets means to its machines, by id. */
export interface SecretsEffect {
  /** Slept; their snapshots are gone, because these held the secrets of before. The next start is cold. */
  discarded: string[];
  /** Run; they keep the secrets of before until they are started from scratch. */
  pending: string[];
}

/** A machine as others see it. */
export interface MachineView {
  record: MachineRecord;
  suspend: Eligibility;
  /** What the machine's checks say; empty unless it runs. */
  checks: CheckResult[];
  /** The image reference as configured, and what it resolved to. */
  image: { ref: string; digest: string };
}

/** Who asked, for the machine's history; absent for a person or a program at the API. */
export interface Asked {
  by?: "proxy" | "itself";
}

/** Lines of logs, as they come. Whoever stops reading early says `return`. */
export type LogBlocks = AsyncGenerator<LogEntry[], void>;

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
  /** Started `by` the proxy for a request, an app that keeps crashing does not get all its retries anew. */
  start(app: string, id: string, asked?: Asked): { previousState: MachineState };
  suspend(app: string, id: string, asked?: Asked): void;
  stop(app: string, id: string, asked?: Asked): void;
  restart(app: string, id: string): void;
  destroy(app: string, id: string, options?: { force?: boolean }): void;
  /**
   * Suspends, or stops, a machine that nobody needs. One that cannot be suspended is stopped instead, and its event says why.
   */
  sleep(app: string, id: string, how: "suspend" | "stop", details: Record<string, unknown>): void;
  /**
   * What the app's machines printed and what became of them, oldest first, in blocks: of those named, or of all, also
   * of those made while one follows. Ends quietly when the signal is aborted.
   */
  logs(app: string, machineIds: readonly string[] | undefined, query: LogQuery, signal: AbortSignal): LogBlocks;
  /** Runs a command in a running machine: `failed_precondition` in any other. */
  run(app: string, id: string, spec: CommandSpec): GuestCommand;

  /** Commands that run in the machine now: somebody waits for them. */
  commands(id: string): number;

  /** What a machine's own programs may do, and hear; `id` is the machine's. */
  /** The app and id of a machine of this platform that is not destroyed. */
  identify(id: string): { app: string; id: string };
  /** Keeps the machine from being put to sleep for being idle, for `ttlS` seconds from now; 0 ends that. */
  keepAwake(id: string, ttlS: number, reason: string): KeepAwake | null;
  /** Tells of starts and of suspends to get ready for, the last start first. Returns how to stop that. */
  listen(id: string, listener: InsideListener): () => void;
  /** An app is ready for the suspend with this id. `not_found` when none waits. */
  ready(id: string, questionId: string): void;
  /** A suspend waits, for a moment, for this reply to reach the guest. */
  awaitReply(id: string, sent: Promise<void>): void;
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

  /** Tells of every machine that is new, changed its state or its configuration. Returns how to stop that. */
  onChange(listener: (record: MachineRecord) => void): () => void;
  /** Host names of their own that apps answer for, each with its app. */
  hostnames(): Record<string, string>;
  /** The name as it is kept. `already_exists` when an app has it, `invalid_argument` when it is none. */
  addHostname(app: string, name: string): string;
  /** `not_found` when the app has no such name. */
  removeHostname(app: string, name: string): void;
  /** Newest first. */
  listReleases(app: string, limit: number): ReleaseRecord[];
  /** Brings the image to this host and writes down that it is being deployed. */
  beginRelease(app: string, image: string, description: string): Promise<ReleaseRecord>;
  /** `not_found` when there is no such release. */
  endRelease(app: string, version: number, status: ReleaseRecord["status"], description: string): ReleaseRecord;
  onHostnames(listener: () => void): () => void;

  /** An app's secrets by name, without their values. */
  listSecrets(app: string): SecretSummary[];
  /** Sets all of them or none. Values that a secret has already change nothing. With `dryRun` it only says what would happen. */
  setSecrets(app: string, values: Record<string, string>, options?: { dryRun?: boolean }): SecretsEffect;
  /** `not_found` when the app has no such secret. */
  unsetSecret(app: string, name: string, options?: { dryRun?: boolean }): SecretsEffect;
}
