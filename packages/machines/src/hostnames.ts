/** Which names an app can have as a hostname: pure rules. */
import { HibernautError } from "@hibernaut/domain/errors";
import { isValidName } from "@hibernaut/domain/naming";
import { isAddress } from "@hibernaut/lib/address-names";

/** The limit of DNS, in characters. */
const MAX_LENGTH = 253;

/** What limits the names of apps. */
interface NameRules {
  /** The proxy's suffixes. Each name under one belongs to the app it begins with. */
  suffixes: readonly string[];
  /** Whether the API is opened under the name. */
  isReserved(name: string): boolean;
}

/**
 * Returns the hostname in lowercase. Throws `invalid_argument` when it is not a name in a domain, when it is under one of the
 * proxy's suffixes, or when it is reserved. Registries' own domains, such as co.uk, are accepted: those who are limited
 * to apps have to prove every name.
 */
export function checkHostname(text: string, { suffixes, isReserved }: NameRules): string {
  const name = plainName(text);
  const refuse = (message: string) => new HibernautError("invalid_argument", message, { field: "hostname" });
  const labels = name.split(".");
  if (isAddress(name))
    throw refuse(`\`${text.slice(0, 100)}\` is an IP address. Use a name in a domain of yours, like www.example.com.`);
  if (name.length > MAX_LENGTH || labels.length < 2 || !labels.every(isValidName))
    throw refuse(`\`${text.slice(0, 100)}\` is not a valid hostname. Use a name like www.example.com.`);
  const suffix = suffixes.find((ending) => name === ending || name.endsWith(`.${ending}`));
  if (suffix !== undefined)
    throw refuse(`You cannot add a name under ${suffix}: every app already answers at <app>.${suffix}.`);
  if (isReserved(name))
    throw refuse(
      `${name} is reserved: this platform's API and dashboard are opened under it, and an app there would be in the way of their cookies. Choose another name.`,
    );
  return name;
}

/** Returns the app that answers at a name under one of the suffixes, or of which a machine does. Undefined for other names. */
export function appUnder(suffixes: readonly string[], name: string): string | undefined {
  const suffix = suffixes.find((ending) => name.endsWith(`.${ending}`));
  return suffix === undefined
    ? undefined
    : name
        .slice(0, -suffix.length - 1)
        .split(".")
        .at(-1);
}

/** Returns the name in a `Host` field. Undefined if it is an address, or nothing that an app could have. */
export function nameIn(host: string | undefined): string | undefined {
  const name = plainName((host && URL.parse(`http://${host}`)?.hostname) ?? "");
  return !isAddress(name) && name.length <= MAX_LENGTH && name.split(".").every(isValidName) ? name : undefined;
}

function plainName(text: string): string {
  return text.toLowerCase().replace(/\.$/, "");
}
