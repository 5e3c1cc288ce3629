/** What a host may be called. Pure. */
import { HibernautError } from "@hibernaut/domain/errors";

/** Part of hostnames in certificates. */
const HOST_NAME = /^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/;

/** Throws `invalid_argument` unless a host may have the name. */
export function requireHostName(name: string): void {
  if (HOST_NAME.test(name)) return;
  throw new HibernautError(
    "invalid_argument",
    `"${name.slice(0, 80)}" is not a valid name for a host. Use up to 32 lowercase letters, digits and hyphens, and begin and end with a letter or a digit.`,
    { name: name.slice(0, 80) },
  );
}

/** The name that a computer's own name suggests: its first part. */
export function suggestedName(hostname: string): string {
  return hostname
    .toLowerCase()
    .replace(/\..*$/, "")
    .replaceAll(/[^a-z0-9-]/g, "-")
    .slice(0, 32)
    .replaceAll(/^-+|-+$/g, "");
}
