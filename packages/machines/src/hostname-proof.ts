/** The proof that an app may have a hostname, for tokens that are limited to apps: the owner of the name names the app in DNS. */
import { HibernautError } from "@hibernaut/domain/errors";
import { messageOf } from "@hibernaut/lib/text";

/** Looks up the TXT records of a name; rejects when DNS does not answer. */
export type TxtRecords = (name: string, signal: AbortSignal) => Promise<string[]>;

/** Throws `failed_precondition` unless DNS says that the app may have the hostname, and `unavailable` if DNS does not answer. */
export async function requireProof(
  { app, hostname }: { app: string; hostname: string },
  txtRecords: TxtRecords,
  signal: AbortSignal,
): Promise<void> {
  const record = `_hibernaut.${hostname}`;
  const value = `app=${app}`;
  const details = { hostname, record, value };
  const found = await txtRecords(record, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    const message = `DNS did not answer for ${record} (${messageOf(error)}), so it is not known whether app ${app} may have ${hostname}. Try again.`;
    throw new HibernautError("unavailable", message, details, { cause: error });
  });
  if (found.includes(value)) return;
  const message = `A token that is limited to apps adds ${hostname} only if its DNS says so. Add the TXT record \`${record}\` with the value \`${value}\` and try again, or have someone with a token for all apps add it: \`hibernaut hostnames add ${hostname} --app ${app}\`.`;
  throw new HibernautError("failed_precondition", message, details);
}
