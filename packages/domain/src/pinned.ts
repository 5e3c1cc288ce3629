/** Image references with a digest, `name@sha256:...`, which mean exactly one image, even if a tag or a file changes. */

const PIN = /@(sha256:[0-9a-f]{64})$/;

/**
 * Returns the reference with the digest in place of any it had.
 *
 * @example
 * pinned("ghcr.io/me/shop:v2", digest); // "ghcr.io/me/shop:v2@sha256:..."
 */
export function pinned(ref: string, digest: string): string {
  return `${ref.replace(PIN, "")}@${digest}`;
}

/** Splits a reference into its name and its digest, if it has one. */
export function splitPin(ref: string): { name: string; digest: string | undefined } {
  return { name: ref.replace(PIN, ""), digest: PIN.exec(ref)?.[1] };
}
