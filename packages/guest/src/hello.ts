/** What F_HELLO and F_EXIT contain. `packages/guest/agent/frame.h` has the same offsets. */
import { unspoken } from "@hibernaut/domain/agent-protocol";
import { GuestError } from "./error.ts";
import type { GuestExit, Hello } from "./protocol.ts";

/** The first version with streams, that is, commands and the local API. */
export const STREAMS_PROTOCOL = 2;

/** The first version with swap. An agent before it refuses a configuration that asks for some. */
export const SWAP_PROTOCOL = 3;

/** Phases by their numbers on the wire. */
export const PHASES = ["waiting", "running", "ended"] as const;

/** Where the fields of F_HELLO are, in bytes. The version is the rest of the payload. */
export const HelloOffset = {
  protocol: 0,
  phase: 4,
  ready: 5,
  pid: 8,
  exit: 12,
  dropped: 24,
  version: 28,
} as const;

/** Where the fields of F_EXIT are, in bytes. */
export const ExitOffset = { code: 0, signal: 4, oom: 8 } as const;

/** Bytes that F_EXIT has at least. */
export const EXIT_BYTES = 9;

/** Returns the content of an F_HELLO. Throws a {@link GuestError} for a protocol that the platform doesn't speak. */
export function decodeHello(payload: Buffer): { protocol: number; hello: Hello } {
  const protocol = payload.length < HelloOffset.version ? 0 : payload.readUInt32LE(HelloOffset.protocol);
  const unknown = unspoken(protocol);
  if (unknown !== undefined) throw new GuestError(unknown);
  const hello: Hello = {
    phase: PHASES[payload.readUInt8(HelloOffset.phase)] ?? "ended",
    ready: payload[HelloOffset.ready] === 1,
    exit: decodeExit(payload.subarray(HelloOffset.exit)),
    dropped: payload.readUInt32LE(HelloOffset.dropped),
    version: payload.toString("utf8", HelloOffset.version),
  };
  return { protocol, hello };
}

/** Returns the content of an F_EXIT, which has at least {@link EXIT_BYTES}. */
export function decodeExit(payload: Buffer): GuestExit {
  return {
    code: payload.readUInt32LE(ExitOffset.code),
    signal: payload.readUInt32LE(ExitOffset.signal),
    oom: payload[ExitOffset.oom] === 1,
  };
}
