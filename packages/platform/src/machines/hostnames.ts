/** What may be a host name of an app: a pure rule. */
import { HibernautError } from "../domain/errors.ts";

/** A label of RFC 1123. */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const MAX_LENGTH = 253;

/** The name in lower case. Throws `invalid_argument` when it is none, or one that belongs to an app by its ending. */
export function checkHostname(text: string, suffixes: readonly string[]): string {
  const name = text.toLowerCase().replace(/\.$/, "");
  const refuse = (message: string) => new HibernautError("invalid_argument", message, { field: "hostname" });
  if (name.length > MAX_LENGTH || !name.split(".").every((label) => LABEL.test(label)))
    throw refuse(`\`${text.slice(0, 100)}\` is no host name. It looks like www.example.com.`);
  const suffix = suffixes.find((ending) => name === ending || name.endsWith(`.${ending}`));
  if (suffix !== undefined)
    throw refuse(
      `Names under ${suffix} belong to the apps they begin with: <app>.${suffix} answers without being added.`,
    );
  return name;
}
