/** The targets of one platform, in `<dataDir>/backup-targets.json`. What must stay secret is sealed in it. */
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { HibernautError } from "@hibernaut/domain/errors";
import { ifAbsent } from "@hibernaut/lib/absence";
import { replaceFile } from "@hibernaut/lib/durable";
import type { Drill, LastRestore } from "../apps/results.ts";
import type { FailedCommand } from "../commands.ts";

/** The name of the file, which is a part of each backup. */
export const TARGETS_FILE = "backup-targets.json";
/** The host keys of SFTP servers, in the form that OpenSSH reads. A part of each backup, too. */
export const KNOWN_HOSTS_FILE = "backup-known-hosts";

/** How the latest backup to a target ended. Times are RFC 3339. */
export interface LastRun {
  startedAt: string;
  endedAt: string;
  state: "complete" | "failed" | "canceled";
  /** The set, when it is complete. */
  set: string | null;
  /** Bytes that the set restores, and those that it added to the repository. */
  bytes: number;
  added: number;
  /** What apps wanted to do before they were backed up, and could not. Absent in records of earlier releases. */
  failedCommands?: FailedCommand[];
  /** Names of pieces that never change and have changed. Absent in records of earlier releases. */
  changed?: string[];
  error: { code: string; message: string } | null;
}

/** How the latest check of a target ended. */
export interface LastCheck {
  at: string;
  /** Whether all stored data was read. */
  readData: boolean;
  error: { code: string; message: string } | null;
}

/** A target as it is stored. Times are RFC 3339. */
export interface TargetRecord {
  name: string;
  /** The place, without credentials. */
  url: string;
  addedAt: string;
  /** Five fields, in UTC; null without a schedule. */
  schedule: string | null;
  scheduledAt: string;
  /** What is kept, as people write it; null to delete nothing. */
  keep: string | null;
  /** The sealed {@link TargetSecrets}, as JSON. */
  sealed: string;
  last: LastRun | null;
  lastSuccess: { at: string; set: string } | null;
  lastCheck: LastCheck | null;
  /** Whether it was told that the backup is overdue. */
  toldOverdue: boolean;
  /** Why old backups could not be deleted after the latest one. */
  pruneError: string | null;
  /** When drills take place: five fields, in UTC. Absent or null without a schedule, like what follows from it. */
  drillSchedule?: string | null;
  drillScheduledAt?: string;
  /** The latest drill of each app, the latest one first. Absent before the first. */
  drills?: Drill[];
  /** The latest drill, also one that did not come as far as an app. */
  lastDrill?: Drill | null;
  lastRestore?: LastRestore | null;
}

interface Content {
  /** Names this platform in repositories. */
  platform: string;
  targets: TargetRecord[];
}

/**
 * Returns the file of a platform that was restored. The original may still be there: so the copy is another platform at its targets,
 * of whose sets it deletes none, and backs up only when it is told to.
 */
export function asRestored(text: string): string {
  const { targets } = JSON.parse(text) as Content;
  const idle = targets.map((target) => ({
    ...target,
    schedule: null,
    keep: null,
    drillSchedule: null,
    toldOverdue: false,
    pruneError: null,
  }));
  return contentText({ platform: newPlatform(), targets: idle });
}

function newPlatform(): string {
  return randomBytes(8).toString("hex");
}

function contentText(content: Content): string {
  return `${JSON.stringify(content, null, 2)}\n`;
}

/** The file. Changes run one after the other, because each writes all of it. */
export class TargetFile {
  readonly #file: string;
  #last: Promise<unknown> = Promise.resolve();

  constructor(file: string) {
    this.#file = file;
  }

  /** Reads the file. `platform` is empty before the first target is added. */
  async read(): Promise<Content> {
    const text = await readFile(this.#file, "utf8").catch(ifAbsent(undefined));
    if (text === undefined) return { platform: "", targets: [] };
    try {
      const content = JSON.parse(text) as Content;
      if (Array.isArray(content.targets) && typeof content.platform === "string") return content;
    } catch {
      // reported below, in the same words as any other wrong content
    }
    const message = `${this.#file} cannot be read, so nothing is backed up to targets. Repair it, or delete it and add the targets again with their keys.`;
    throw new HibernautError("unavailable", message, { file: this.#file });
  }

  /** Changes the targets, and returns them. */
  change(change: (targets: TargetRecord[]) => TargetRecord[]): Promise<TargetRecord[]> {
    const work = this.#last.then(async () => {
      const { platform, targets } = await this.read();
      const changed = change(targets);
      const content: Content = { platform: platform || newPlatform(), targets: changed };
      await replaceFile(this.#file, contentText(content), { mode: 0o600 });
      return changed;
    });
    this.#last = work.catch(() => {});
    return work;
  }

  /** Changes one target, if it is still there. */
  async update(name: string, change: (target: TargetRecord) => Partial<TargetRecord>): Promise<void> {
    await this.change((targets) => targets.map((one) => (one.name === name ? { ...one, ...change(one) } : one)));
  }
}
