/** Runs what apps do before they are backed up, in those of their machines that run. */
import { DEFAULT_BACKUP_COMMAND_S } from "@hibernaut/domain/limits";
import { messageOf } from "@hibernaut/lib/text";
import type { Resources } from "@hibernaut/machines";
import { runIn } from "./apps/command.ts";

/** What the commands of one app may take together in one backup, in milliseconds: others are backed up after it. */
const APP_MS = 30 * 60_000;
/** What all commands may take together in one backup, in milliseconds: the next backup is due some time. */
const ALL_MS = 2 * 60 * 60_000;

/** A command that failed, or was not run. */
export interface FailedCommand {
  /** The machine. */
  id: string;
  app: string;
  reason: string;
}

/** The commands of one backup. */
export class BackupCommands {
  readonly #ports: Pick<Resources, "machines" | "commands">;
  readonly #done = new Set<string>();
  /** Milliseconds, by app. */
  readonly #spent = new Map<string, number>();

  constructor(ports: Pick<Resources, "machines" | "commands">) {
    this.#ports = ports;
  }

  /**
   * Runs the command of a machine, once in a backup, if it has one and runs. Resolves with why that failed: the machine is
   * backed up nevertheless. Rejects with the signal's reason.
   */
  async before(id: string, signal: AbortSignal): Promise<FailedCommand | undefined> {
    const record = this.#ports.machines.recordOf(id);
    const { command, timeout = DEFAULT_BACKUP_COMMAND_S } = record?.config.backup ?? {};
    if (record?.state !== "running" || command === undefined || this.#done.has(id)) return undefined;
    this.#done.add(id);
    const { app } = record;
    const spent = this.#spent.get(app) ?? 0;
    const all = [...this.#spent.values()].reduce((sum, one) => sum + one, 0);
    const timeoutMs = Math.min(timeout * 1000, APP_MS - spent, ALL_MS - all);
    if (timeoutMs <= 0) return { id, app, reason: "the commands before it took all the time that there is for them" };
    const began = performance.now();
    try {
      await runIn(this.#ports.commands, { app, machine: id, args: command, timeoutMs }, signal);
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      return { id, app, reason: messageOf(error) };
    } finally {
      this.#spent.set(app, spent + performance.now() - began);
    }
  }
}
