/** Methods about targets of backups. */

import type { CallOptions } from "./transport.ts";
import type {
  AddBackupTargetRequest,
  BackupSet,
  BackupTarget,
  DrillRequest,
  NewBackupTarget,
  RestoreAppRequest,
  UpdateBackupTargetRequest,
} from "./types.ts";
import { WebhookClient } from "./webhook-client.ts";

/** The part of the client about targets of backups. See {@link WebhookClient}. */
export abstract class BackupClient extends WebhookClient {
  /** Returns the targets of backups. */
  async listBackupTargets(options?: CallOptions): Promise<BackupTarget[]> {
    return (await this.call("get", "/v1/platform/backups/targets", { ...options })).targets;
  }

  /** Adds a target, once its repository was opened or made. A new key is in the reply, and nowhere else ever after. */
  addBackupTarget(body: AddBackupTargetRequest, options?: CallOptions): Promise<NewBackupTarget> {
    return this.call("post", "/v1/platform/backups/targets", { body, ...options });
  }

  /** Returns a target. */
  getBackupTarget(target: string, options?: CallOptions): Promise<BackupTarget> {
    return this.call("get", "/v1/platform/backups/targets/{target}", { params: { target }, ...options });
  }

  /** Changes when backups are made, and which are kept. */
  updateBackupTarget(target: string, body: UpdateBackupTargetRequest, options?: CallOptions): Promise<BackupTarget> {
    return this.call("patch", "/v1/platform/backups/targets/{target}", { params: { target }, body, ...options });
  }

  /** Forgets a target. What is stored there stays. */
  async removeBackupTarget(target: string, options?: CallOptions): Promise<void> {
    await this.call("delete", "/v1/platform/backups/targets/{target}", { params: { target }, ...options });
  }

  /** Returns the backups at a target, newest first. */
  async listBackupSets(target: string, options?: CallOptions): Promise<BackupSet[]> {
    const request = { params: { target }, ...options };
    return (await this.call("get", "/v1/platform/backups/targets/{target}/sets", request)).sets;
  }

  /** Begins a backup to a target. Resolves at once; `last` of {@link getBackupTarget} says how it ended. */
  startBackup(target: string, options?: CallOptions): Promise<BackupTarget> {
    return this.call("post", "/v1/platform/backups/targets/{target}/run", { params: { target }, ...options });
  }

  /** Cancels the backup or the check that runs at a target. */
  async cancelBackup(target: string, options?: CallOptions): Promise<void> {
    await this.call("delete", "/v1/platform/backups/targets/{target}/run", { params: { target }, ...options });
  }

  /** Begins a check of what is stored at a target. `last_check` of {@link getBackupTarget} says how it ended. */
  startBackupCheck(target: string, body: { read_data?: boolean } = {}, options?: CallOptions): Promise<BackupTarget> {
    return this.call("post", "/v1/platform/backups/targets/{target}/check", { params: { target }, body, ...options });
  }

  /** Begins to restore one app from a target. `last_restore` of {@link getBackupTarget} says how it ended. */
  restoreApp(target: string, body: RestoreAppRequest, options?: CallOptions): Promise<BackupTarget> {
    return this.call("post", "/v1/platform/backups/targets/{target}/restore", { params: { target }, body, ...options });
  }

  /**
   * Begins a drill: by default, of the app whose last one is the longest ago. `drills` of {@link getBackupTarget} says how it
   * ended.
   */
  startDrill(target: string, body: DrillRequest = {}, options?: CallOptions): Promise<BackupTarget> {
    return this.call("post", "/v1/platform/backups/targets/{target}/drill", { params: { target }, body, ...options });
  }
}
