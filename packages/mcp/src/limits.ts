/** Limits and time-outs of the MCP server, each with its reason. */

/** How many sandboxes a list names at most: more is not read by anyone. */
export const MOST_LISTED = 100;
/** How many forks one call makes at most: each takes the disk of a whole memory. */
export const MOST_FORKS = 10;
/** How long a command may take unless the caller says otherwise, and at most, in seconds: the latter is the platform's limit. */
export const COMMAND_TIMEOUT_S = { otherwise: 60, maximum: 3600 } as const;
/** How long a sandbox lives unless the caller says otherwise, in seconds. Agents think between two calls. */
export const SANDBOX_TIMEOUT_S = 3600;
/** How often a client is told that work is still in progress, in milliseconds: clients give up on silent calls after 60 s. */
export const PROGRESS_MS = 10_000;

/** The largest body of a request, in bytes: a file is written with one. */
export const MOST_BODY_BYTES = 4 * 1024 * 1024;
/** How many sessions there are at most, of all tokens. Each keeps a server of some 100 KB. */
export const MOST_SESSIONS = 256;
/** How many of them one token has, so that nobody takes all. The one that was idle longest makes room. */
export const MOST_SESSIONS_OF_TOKEN = 16;
/** A session that nobody used for this long ends, in milliseconds. A client begins another one by itself. */
export const SESSION_IDLE_MS = 30 * 60_000;
/** How many requests, and how many calls, of one session are under way at most. */
export const MOST_CALLS = 32;
/** How many connections there are at most: some for each session, as one of them may be a stream. */
export const MOST_CONNECTIONS = 1024;
/** How long the platform has to say whose token it is, in milliseconds. */
export const VERIFY_TIMEOUT_MS = 10_000;
