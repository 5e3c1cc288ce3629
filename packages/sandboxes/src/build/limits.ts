/** Limits and time-outs of builds, each with its reason. */

/** How many builds run at once, of all apps: each is a machine that works as hard as it can. */
export const MOST_AT_ONCE = 4;
/** How many of one app run at once, so that an app whose builds take an hour leaves turns to others. */
export const MOST_AT_ONCE_OF_APP = 2;
/** How many of one app run or wait for their turn, so that it does not keep others from building. */
export const MOST_OF_APP = 4;
/** How many wait for their turn, of all apps: with those that run, some hours of work. */
export const MOST_WAITING = 32;
/** How many builds of an app are remembered. The oldest that have ended go first. */
export const MOST_KEPT = 50;
/** A build that is announced, and not started that long, is forgotten, in milliseconds: its files take minutes to come. */
export const ANNOUNCED_MS = 2 * 60 * 60_000;
/** How long a build may take from its turn on, in milliseconds. */
export const BUILD_TIMEOUT_MS = 60 * 60_000;
/** How long the machine of a build may take to run, in milliseconds. An image may have to be started from scratch. */
export const RUNNING_TIMEOUT_MS = 5 * 60_000;
/** How long a start command may take until its ready command succeeds, in milliseconds. */
export const READY_TIMEOUT_MS = 5 * 60_000;
/** Between two tries of a ready command, in milliseconds. */
export const READY_LOOK_MS = 500;
/** How long a start command without a ready command gets, in milliseconds: as the clients document it. */
export const UNTOLD_READY_MS = 20_000;
/** How long the end of a build's machine may take, in milliseconds: it has no volumes and no requests. */
export const GONE_TIMEOUT_MS = 60_000;
/** How long the end of the platform waits for builds to end, in milliseconds. What is left, the next platform destroys. */
export const CLOSE_TIMEOUT_MS = 10_000;

/** How many steps a build has at most: ten times what large templates have. */
export const MOST_STEPS = 500;
/** The longest path, name of a user or image, in characters: as long as a path of Linux. */
export const LONGEST_WORD = 4096;

/** How many entries the log of a build has at most, and in all their text, in characters: it is stored whole. */
export const MOST_LOG_ENTRIES = 4000;
export const MOST_LOG_CHARACTERS = 512 * 1024;
/** Room in the log for what the platform itself says last, in entries. */
export const LOG_RESERVE = 20;
/** A longer line of a program becomes several entries, in characters. */
export const LONGEST_LINE = 4096;
/** How many entries a client gets at once, as the API documents it. */
export const MOST_ENTRIES_TOLD = 100;
/** How many of the last entries tell why a build has failed. */
export const ENTRIES_OF_FAULT = 20;

/** The largest upload, in bytes: a repository with its dependencies fits. */
export const MOST_UPLOAD_BYTES = 1024 ** 3;
/** What an app's uploads take together, in bytes, and how many there are. The oldest go first. */
export const MOST_UPLOADED_BYTES = 4 * 1024 ** 3;
export const MOST_UPLOADS = 200;
/** How many uploads of an app are received at once: clients send all of a build together, and the others wait. */
export const UPLOADS_AT_ONCE = 4;
/** How many wait at most. */
export const MOST_UPLOADS_WAITING = 100;
/** How long an upload may take, in milliseconds: as long as the clients allow it. */
export const UPLOAD_TIMEOUT_MS = 60 * 60_000;
/** How long a link for an upload holds, in milliseconds: it is used at once, or after the uploads before it. */
export const LINK_MS = 60 * 60_000;
/** An upload that no build asked for that long is deleted, in milliseconds: a week of work on a template. */
export const UPLOAD_KEPT_MS = 7 * 24 * 60 * 60_000;
/** How often uploads are looked through, in milliseconds. */
export const SWEEP_MS = 60 * 60_000;
/** Free space of the disk that uploads leave to machines, in bytes. */
export const DISK_RESERVE_BYTES = 1024 ** 3;
/** What the files of one step are when they are unpacked: bytes, and how many there are. */
export const MOST_UNPACKED_BYTES = 8 * 1024 ** 3;
export const MOST_ENTRIES = 200_000;
