/** What happens at targets, one thing at a time: a backup, or a check. */
import { randomBytes } from "node:crypto";
import { HibernautError } from "@hibernaut/domain/errors";
import type { Phase } from "./contract.ts";

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
