/**
 * Overwrites with zeros what nobody needs any more. JavaScript's strings cannot be overwritten, so a secret that was one stays
 * in memory until the garbage collector reuses its place: SECURITY.md says for which that holds.
 */
export function wipe(...secrets: readonly (Uint8Array | undefined)[]): void {
  for (const bytes of secrets) bytes?.fill(0);
}

/** Returns what `use` makes of the bytes, which are zeros after that, whatever happens. */
export function wiping<B extends Uint8Array | undefined, T>(bytes: B, use: (bytes: B) => T): T {
  try {
    return use(bytes);
  } finally {
    wipe(bytes);
  }
}
