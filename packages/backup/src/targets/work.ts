/** What happens at targets, one thing at a time: a backup, a check, a restore or a drill. */
import { randomBytes } from "node:crypto";
import { HibernautError } from "@hibernaut/domain/errors";
import type { Drill, LastRestore } from "../apps/results.ts";
import type { Phase } from "./contract.ts";
import type { Repository } from "./repository.ts";

/** Where the platform writes what its administrator should know. */
export interface Log {
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
}

/** What happens at a target. */
export interface Work {
  target: string;
  phase: Phase;
  /** RFC 3339. */
  startedAt: string;
  /** Random hex digits. */
  mark: string;
  abort: AbortController;
  ended: Promise<unknown>;
  /** It has taken effect. */
  committed?: boolean;
}

/** What came of a restore or a drill. `apps` are those of the set that a drill is from: results of others are dropped. */
export type UseResult = { restore: LastRestore } | { drill: Drill; apps: readonly string[] };

/** A target at work for something else than backups of the platform. */
export interface TargetWork {
  /** Names this platform in the repository. */
  platform: string;
  signal: AbortSignal;
  /** RFC 3339. */
  startedAt: string;
  /** The latest drill of each app. */
  drills: readonly Drill[];
  /** Opens the repository for as long as it is used. */
  withRepository<T>(use: (repository: Repository) => Promise<T>): Promise<T>;
  /** Now, RFC 3339. */
  now(): string;
  /** From here on, it cannot be canceled. */
  committed(): void;
  /** Stores and tells what came of it. */
  ended(result: UseResult): Promise<void>;
}

/** Returns work that begins now. */
export function newWork(target: string, phase: Phase, now: Date): Work {
  const mark = randomBytes(3).toString("hex");
  const [abort, ended] = [new AbortController(), Promise.resolve()];
  return { target, phase, startedAt: now.toISOString(), mark, abort, ended };
}

/** The name of the set that work makes. It sorts like the time, and two platforms that begin in the same second have two. */
export function setName({ startedAt, mark }: Work): string {
  return `${startedAt.replace(/[-:]|\.\d+/g, "")}-${mark}`;
}

/** Returns the error for those who want to begin something meanwhile. */
export function busy({ target, phase, startedAt }: Work): HibernautError {
  const message = `The target ${target} is ${phase} since ${startedAt}, and there is one such work at a time. Wait until it has ended, or cancel it: hibernaut backup cancel ${target}`;
  return new HibernautError("failed_precondition", message, { target });
}
