/** Limits of what clients do inside sandboxes, each with its reason. */

/** How much output waits for one slow client, in bytes, before the program has to wait, too. */
export const MOST_WAITING_BYTES = 1024 * 1024;
/** How many clients may follow one program, so that its output is not copied without end. */
export const MOST_FOLLOWERS = 32;
/** How many watchers one sandbox has at once: each is a program in it, which has room for 32. */
export const MOST_WATCHERS = 12;
/** A watcher that nobody asked for that long is ended, in milliseconds. */
export const WATCHER_IDLE_MS = 10 * 60_000;
/** The shortest time between two signs of life, in seconds, whatever a client asks for. */
export const LEAST_KEEPALIVE_S = 5;
/** The longest message of a client, in bytes: input for a program. Files come by HTTP. */
export const MOST_MESSAGE_BYTES = 4 * 1024 * 1024;
/** How much the list of a directory may say, in bytes: 100,000 entries with paths of usual length. */
export const MOST_LIST_BYTES = 16 * 1024 * 1024;
/** The same for any other task, whose answer is one entry: a path, and all attributes of a file. */
export const MOST_SAID_BYTES = 256 * 1024;
/** How much of an error of a task is passed on, in bytes. */
export const MOST_ERROR_BYTES = 2000;
/** How many tasks one sandbox carries out at once: the agent has room for 128 streams, of programs too. */
export const MOST_TASKS = 24;
/** How much the events of one watcher may be, in bytes, until a client asks for them. */
export const MOST_WAITING_EVENT_BYTES = 4 * 1024 * 1024;
/** The longest label that the agent keeps, in bytes: `packages/guest/agent/config.h`. */
export const MOST_LABEL_BYTES = 8192;
/** How much input waits for a program that does not read, in bytes, before more is refused. */
export const MOST_INPUT_BYTES = 1024 * 1024;
/** How many rows or columns a terminal has at most: as many as the kernel can count. */
export const MOST_TERMINAL = 65_535;
