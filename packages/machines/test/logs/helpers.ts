/** A log in its own directory, and its content. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { LogEntry } from "../../src/logs/entry.ts";
import { type LogSource, readLogs } from "../../src/logs/follow.ts";
import { MachineLog, type MachineLogOptions } from "../../src/logs/machine-log.ts";
import type { LogQuery } from "../../src/logs/merge.ts";

export const MACHINE = "0123456789abcd";
const MB = 1024 * 1024;
/** As good as none: most tests are about something else. */
const NO_LIMIT = { bytesPerS: 1e12, linesPerS: 1e9 };

/** The log of a machine whose directory is created with the first line. */
export function logIn(folder: string, options: Partial<MachineLogOptions> = {}): MachineLog {
  const logs = join(folder, options.machine ?? MACHINE);
  const prepare = async () => void (await mkdir(logs, { recursive: true }));
  return new MachineLog({ machine: MACHINE, folder: logs, maxBytes: 16 * MB, rate: NO_LIMIT, prepare, ...options });
}

/** Logs that are all known from the beginning. */
export function fixed(...logs: MachineLog[]): LogSource {
  return { list: () => logs, complete: () => true, subscribe: () => () => {} };
}

export async function collect(blocks: AsyncIterable<LogEntry[]>): Promise<LogEntry[]> {
  return (await Array.fromAsync(blocks)).flat();
}

export function entriesOf(logs: MachineLog[], query: Partial<LogQuery> = {}): Promise<LogEntry[]> {
  return collect(readLogs(fixed(...logs), { limit: 10_000, ...query }, new AbortController().signal));
}

export async function textsOf(log: MachineLog, query: Partial<LogQuery> = {}): Promise<string[]> {
  return (await entriesOf([log], query)).map(({ text }) => text);
}

/** Resolves when everything that was added can be read. */
export async function written(log: MachineLog): Promise<void> {
  await log.close();
  log.reopen();
}
