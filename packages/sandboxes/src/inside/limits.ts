/** Limits of what clients do inside sandboxes, each with its reason. */

/** How much output waits for one slow client, in bytes, before the program has to wait, too. */
export const MOST_WAITING_BYTES = 1024 * 1024;
/** How many clients may follow one program, so that its output is not copied without end. */
export const MOST_FOLLOWERS = 32;
/** How many watchers one sandbox has at once: each is a program in it, which has room for 32. */
export const MOST_WATCHERS = 12;
/** How many events wait until a client asks for them. Older ones are dropped: it can look at the files. */
export const MOST_WAITING_EVENTS = 10_000;
/** A watcher that nobody asked for that long is ended, in milliseconds. */
export const WATCHER_IDLE_MS = 10 * 60_000;
/** The shortest time between two signs of life, in seconds, whatever a client asks for. */
export const LEAST_KEEPALIVE_S = 5;
/** The longest message of a client, in bytes: input for a program. Files come by HTTP. */
export const MOST_MESSAGE_BYTES = 4 * 1024 * 1024;
/** How much a task may say, in bytes, except for contents: a list of 100,000 entries. */
export const MOST_SAID_BYTES = 64 * 1024 * 1024;
/** How much of an error of the agent is passed on, in characters. */
export const MOST_ERROR_CHARACTERS = 2000;
