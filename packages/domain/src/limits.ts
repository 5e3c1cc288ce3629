/** Limits of a machine's configuration. Pure, and part of the CLI's bundle: the app file is checked with the same ones. */

/** More memory would make a suspend slow and its file large, and software emulation could not make use of it. In MB. */
export const MEMORY_MB = { minimum: 128, maximum: 32_768 } as const;

/** Enough for a small app in any language, and a snapshot of it is written in a moment. */
export const DEFAULT_MEMORY_MB = 256;

/** Swap, which lies on the machine's writable layer. In MB. */
export const SWAP_MB = { minimum: 0, maximum: 32_768 } as const;

/** Virtual CPUs. */
export const CPUS = { minimum: 1, maximum: 8 } as const;
export const DEFAULT_CPUS = 1;

/** A volume's file is sparse, so its size is only a limit. One that is larger than any disk is a mistake. In GB. */
export const VOLUME_GB = { minimum: 1, maximum: 4096 } as const;

/** How long a preview is kept after it was last deployed, in seconds. What is needed for more than a month is an app. */
export const PREVIEW_TTL_S = { minimum: 60, maximum: 2_592_000 } as const;

/** How long snapshots of a volume can be kept, in days. */
export const RETENTION_DAYS = { minimum: 1, maximum: 60 } as const;

/** After how long without a request a machine is idle, in seconds. */
export const IDLE_TIMEOUT_S = { minimum: 1, maximum: 86_400 } as const;

/** Long enough that a visitor who reads a page finds the machine awake, short enough that a night costs nothing. */
export const DEFAULT_IDLE_TIMEOUT_S = 300;

/** As on Fly: at this load a machine still takes requests, and another one is started. */
export const DEFAULT_SOFT_LIMIT = 20;

/** How long a request waits for its machine, in seconds. As long as a platform's own limit can be. */
export const HOLD_TIMEOUT_S = { minimum: 1, maximum: 600 } as const;

/** How long the paused virtual machine of a suspended machine is kept, in seconds. */
export const KEEP_WARM_S = { minimum: 0, maximum: 86_400 } as const;

/** How long a machine may take to get ready for a template, in seconds. A request waits, and Node gives up on it after 300 s. */
export const TEMPLATE_TIMEOUT_S = { minimum: 1, maximum: 280 } as const;

/** A cold start on a slow host, and an app that fills its caches. */
export const DEFAULT_TEMPLATE_TIMEOUT_S = 240;

/** How many machines are forked at once: each costs a copy of a memory, and a request waits for all of them. */
export const FORKS_AT_ONCE = { minimum: 1, maximum: 100 } as const;

/** How many machines wait in the pool of a template: each takes the disk of one that sleeps. */
export const WARM_POOL = { minimum: 0, maximum: 100 } as const;

/** How long an app may take to exit, in seconds. */
export const STOP_TIMEOUT_S = { minimum: 0, maximum: 300 } as const;

/** How long an app may prepare for a suspend, in seconds. */
export const SUSPEND_TIMEOUT_S = { minimum: 0, maximum: 60 } as const;

/** The name of an environment variable: what `environ` can hold. The pattern of a JSON schema. */
export const ENV_NAME_PATTERN = "^[^=\\u0000]+$";
/** The value of an environment variable, in characters. */
export const ENV_VALUE_MAX_LENGTH = 32_768;

/** What is kept of a configuration that a client of Fly's API sent, in characters: it has neither variables nor contents of files. */
export const FLY_CONFIG_MAX_LENGTH = 64 * 1024;

/** How long a sandbox may live from a request for it, in seconds. A day: a program that forgets one pays for no more than that. */
export const SANDBOX_TIMEOUT_S = { minimum: 1, maximum: 24 * 60 * 60 } as const;
/** How long one lives that was made without saying so, in seconds. */
export const DEFAULT_SANDBOX_TIMEOUT_S = 300;

/** How long a command before a backup may take, in seconds: a dump of a large database, while other apps wait. */
export const BACKUP_COMMAND_S = { minimum: 1, maximum: 1800 } as const;
export const DEFAULT_BACKUP_COMMAND_S = 600;
/** Each is a command that a drill waits for. */
export const MOST_BACKUP_COUNTS = 8;
