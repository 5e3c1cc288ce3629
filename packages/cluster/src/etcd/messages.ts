/** What etcd's JSON gateway takes and gives. Keys and values are base64, and 64-bit numbers are text. Pure. */
import type { Change, Changed, Condition, Entry } from "../contract.ts";

/** In every reply. */
interface Header {
  header?: { revision?: string };
}

interface KeyValue {
  key: string;
  /** Absent when it is empty. */
  value?: string;
  mod_revision: string;
}

export interface RangeReply extends Header {
  kvs?: KeyValue[];
  more?: boolean;
}

export interface TxnReply extends Header {
  succeeded?: boolean;
  responses?: { response_put?: object; response_delete_range?: { deleted?: string } }[];
}

export interface GrantReply extends Header {
  ID: string;
  TTL: string;
}

export interface KeepAliveReply extends Header {
  /** Absent or 0 when there is no such lease. */
  TTL?: string;
}

export interface WatchReply extends Header {
  created?: boolean;
  canceled?: boolean;
  cancel_reason?: string;
  compact_revision?: string;
  events?: { type?: "DELETE"; kv: KeyValue }[];
}

/** One line of a stream. */
export interface StreamLine {
  result?: unknown;
  error?: { message?: string; grpc_code?: number; code?: number };
}

export function encode(text: string): string {
  return Buffer.from(text).toString("base64");
}

function decode(text: string | undefined): string {
  return Buffer.from(text ?? "", "base64").toString();
}

/** The range of all keys of a prefix, from a key on. Prefixes end in a character that is not the last one of UTF-8. */
export function rangeOf(prefix: string, from = prefix): { key: string; range_end: string } {
  const end = Buffer.from(prefix);
  end[end.length - 1] = (end.at(-1) ?? 0) + 1;
  return { key: encode(from), range_end: end.toString("base64") };
}

/** The first key after this one. */
export function keyAfter(key: string): string {
  return `${key}\0`;
}

export function revisionOf({ header }: Header): number {
  return Number(header?.revision ?? 0);
}

export function entryOf({ key, value, mod_revision: revision }: KeyValue): Entry {
  return { key: decode(key), value: decode(value), revision: Number(revision) };
}

export function txnOf(conditions: readonly Condition[], changes: readonly Change[]): object {
  return {
    compare: conditions.map(({ key, revision }) => ({
      ...{ key: encode(key), target: "MOD", result: "EQUAL", mod_revision: String(revision) },
    })),
    success: changes.map(({ key, value, lease }) =>
      value === null
        ? { request_delete_range: { key: encode(key) } }
        : { request_put: { key: encode(key), value: encode(value), ...(lease && { lease: lease.id }) } },
    ),
  };
}

/** Whether a transaction that took effect changed anything, and did not only delete what was not there. */
export function hasChanged({ responses = [] }: TxnReply): boolean {
  return responses.some(
    ({ response_put: put, response_delete_range: deleted }) => put !== undefined || Number(deleted?.deleted ?? 0) > 0,
  );
}

export function changesOf({ events = [] }: WatchReply): Changed[] {
  return events.map(({ type, kv }) => {
    const entry = entryOf(kv);
    return type === "DELETE" ? { ...entry, value: null } : entry;
  });
}
