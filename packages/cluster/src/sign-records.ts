/** Signs the records of a directory that an earlier version wrote, or someone by hand: an administrator says that they are right. */
import type { Change, Directory, Entry } from "./contract.ts";
import { KEYS, ROOT } from "./keys.ts";
import type { RecordSeal } from "./signed-directory.ts";

/** They live with a lease, which a new value would take from them. They end soon, and are made again signed. */
const LEASED = [KEYS.hosts, KEYS.joins, KEYS.released];

/** The records that no host believes, because they are not signed with this key. */
export async function unsignedRecords(directory: Directory, seal: RecordSeal): Promise<Entry[]> {
  const { entries } = await directory.list(ROOT);
  return entries.filter(
    ({ key, value }) => !LEASED.some((prefix) => key.startsWith(prefix)) && seal.open(key, value) === undefined,
  );
}

/** Signs one. One that has changed meanwhile is left as it is. Resolves with whether it is signed now. */
export async function signRecord(directory: Directory, seal: RecordSeal, entry: Entry): Promise<boolean> {
  const { key, value, revision } = entry;
  const change: Change = { key, value: seal.sign(key, valueOf(value)) };
  return (await directory.transact([{ key, revision }], [change])) !== undefined;
}

/** What a record says, without the signature of another key that it may have. */
function valueOf(text: string): string {
  const { record, mac } = JSON.parse(text) as { record?: unknown; mac?: unknown };
  return record !== undefined && typeof mac === "string" ? JSON.stringify(record) : text;
}
