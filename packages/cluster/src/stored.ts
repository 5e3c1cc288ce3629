/** Values of the directory, which are JSON, and changes of them. */
import type { Change, Directory } from "./contract.ts";

/** A key's value, with the revision at which it got it: what a transaction may rest on. */
export interface Stored<T> {
  readonly key: string;
  readonly value: T;
  readonly revision: number;
}

/** Reads a key. Resolves with undefined when there is none. */
export async function read<T>(
  directory: Pick<Directory, "get">,
  key: string,
  signal?: AbortSignal,
): Promise<Stored<T> | undefined> {
  const entry = await directory.get(key, signal);
  return entry && { ...entry, value: JSON.parse(entry.value) as T };
}

/** Returns a change that stores a value. */
export function put(key: string, value: unknown): Change {
  return { key, value: JSON.stringify(value) };
}

/** Returns a change that deletes a key. */
export function deletion(key: string): Change {
  return { key, value: null };
}
