/** Defaults that several commands share. Those of a configuration are the platform's: it applies them, we show them. */

/** How long commands wait for machines, in seconds: a cold start under emulation takes a few, an import minutes. */
export const WAIT_TIMEOUT_S = 120;
/** How long a drain takes at most, in seconds. */
export const DRAIN_TIMEOUT_S = 90;
export const DEFAULT_CPUS = 1;
export const DEFAULT_MEMORY_MB = 256;
export const DEFAULT_IDLE_TIMEOUT_S = 300;
