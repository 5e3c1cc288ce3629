/** Which names an app can have as a hostname: a pure rule. */
import { HibernautError } from "../domain/errors.ts";
import { isValidName } from "../domain/naming.ts";

/** The limit of DNS, in characters. */
const MAX_LENGTH = 253;

/**
 * Returns the hostname in lowercase. Throws `invalid_argument` when it is not valid, or when it is under one of the
 * proxy's `suffixes`, where each name already belongs to the app it begins with.
 */
export function checkHostname(text: string, suffixes: readonly string[]): string {
  const name = text.toLowerCase().replace(/\.$/, "");
  const refuse = (message: string) => new HibernautError("invalid_argument", message, { field: "hostname" });
  if (name.length > MAX_LENGTH || !name.split(".").every(isValidName))
    throw refuse(`\`${text.slice(0, 100)}\` is not a valid hostname. Use a name like www.example.com.`);
  const suffix = suffixes.find((ending) => name === ending || name.endsWith(`.${ending}`));
  if (suffix !== undefined)
    throw refuse(`You cannot add a name under ${suffix}: every app already answers at <app>.${suffix}.`);
  return name;
}
