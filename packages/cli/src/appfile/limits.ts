/** The memory of a machine, in MB, that the platform accepts. */
export const MEMORY_MB = { minimum: 128, maximum: 32_768 } as const;
