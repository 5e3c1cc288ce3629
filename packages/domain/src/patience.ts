/**
 * How long a request waits for a machine: three time limits, one inside the other, all in milliseconds. Then, how long a
 * connection that is open waits for one of its ends.
 *
 *     |<------------------------ find a machine: 120 s ------------------------->|
 *     |<-- held in the app's queue: 60 s -->|<-- connect: 10 s -->|
 *
 * The inner limits know why they end and say so ("No machine of app shop was ready within 60 s."). The outer one only
 * catches what they miss, so it has to be longer than both together.
 */

/**
 * How long a running machine's port may take to answer. An app that was running before a sleep answers in
 * milliseconds; one that just started may still be loading. The default of HIBERNAUT_PROXY_CONNECT_TIMEOUT.
 */
export const CONNECT_TIMEOUT_MS = 10_000;

/**
 * How long a request is held in its app's queue. A cold start under emulation on a busy host ends within this time.
 * The default of HIBERNAUT_PROXY_HOLD_TIMEOUT.
 */
export const HOLD_TIMEOUT_MS = 60_000;

/** How long the search for a machine may take in total, until a request is sent to it. */
export const FIND_MACHINE_MS = 120_000;

/** How much longer than both inner limits the outer one is at least, so that they are always the ones that end first. */
const MARGIN_MS = 10_000;

/** Returns the outer limit for given inner ones: longer than both together, whatever the settings say. */
export function findMachineMs({
  holdTimeoutMs,
  connectTimeoutMs,
}: {
  holdTimeoutMs: number;
  connectTimeoutMs: number;
}) {
  return Math.max(FIND_MACHINE_MS, holdTimeoutMs + connectTimeoutMs + MARGIN_MS);
}

/**
 * How long a client or an app may take none of the bytes that wait for it on a TCP connection or WebSocket. Linux tries
 * about as long to reach a peer that is gone (`tcp_retries2`). What a slow reader takes is seen late: Linux asks for more
 * bytes only once a third of a socket's send buffer is free, which is up to some 1.5 MB (`tcp_wmem`). So a reader needs
 * about 2 KB a second to be safe. The default of HIBERNAUT_PROXY_STALL_TIMEOUT.
 */
export const TUNNEL_STALL_MS = 900_000;

/** Less would cut off readers of 5 KB a second, who read all the time. */
export const LEAST_TUNNEL_STALL_MS = 300_000;
