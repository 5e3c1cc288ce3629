/** Why a certificate is not added or found, as errors for users. */
import { HibernautError } from "@hibernaut/domain/errors";
import { messageOf } from "@hibernaut/lib/text";

/** Certificates of a platform: Let's Encrypt allows 300 orders in 3 hours, so a first round of these takes two days. */
export const MAX_CERTIFICATES = 5000;

/** What went wrong, as a sentence with a period. */
export function sentence(error: unknown): string {
  const text = messageOf(error).trim();
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

export function hookMissing(name: string): HibernautError {
  const message = `${name} can only be proven through DNS, and no program that changes the DNS is configured. Set HIBERNAUT_ACME_DNS_HOOK (docs/https.md), or add a certificate for each hostname.`;
  return new HibernautError("failed_precondition", message, { hostname: name });
}

export function termsRefusal(name: string, app: string, terms: string): HibernautError {
  const message = `The certificate authority has terms of service (${terms}). Read them, then agree to them with: hibernaut certs add ${name} --app ${app} --agree-terms (over HTTP \`"agree_to_terms": true\`).`;
  return new HibernautError("failed_precondition", message, { terms });
}

export function authorityUnreachable(error: unknown, directory: string): HibernautError {
  const message = `${sentence(error)} Nothing was added. Check the network and HIBERNAUT_ACME_DIRECTORY (${directory}), then add it again.`;
  return new HibernautError("unavailable", message, { directory }, { cause: error });
}

export function takenByOther(name: string, app: string): HibernautError {
  const message = `App ${app} has the certificate for ${name}. It serves the names of all apps, so there is nothing to add.`;
  return new HibernautError("already_exists", message, { hostname: name, app_name: app });
}

export function tooMany(count: number): HibernautError {
  const message = `The platform already has ${count} certificates, and manages up to ${MAX_CERTIFICATES}. Remove some with \`hibernaut certs remove\`, or use a wildcard.`;
  return new HibernautError("failed_precondition", message, { most: MAX_CERTIFICATES });
}

export function changedMeanwhile(name: string): HibernautError {
  return new HibernautError("aborted", `${name} was added or its app deleted at the same moment. Try again.`);
}

export function nothingToRevoke(name: string, directory: string, issuedBy: string | undefined): HibernautError {
  const why =
    issuedBy === undefined
      ? "none was issued yet"
      : `it was issued by ${issuedBy}, and the platform now uses ${directory}`;
  const message = `The certificate for ${name} cannot be revoked: ${why}. Nothing was removed. Remove it without --revoke.`;
  return new HibernautError("failed_precondition", message, { hostname: name });
}

export function notRevoked(name: string, error: unknown): HibernautError {
  const message = `The certificate for ${name} was neither revoked nor removed. ${sentence(error)} Try again later, or remove it without --revoke.`;
  return new HibernautError("unavailable", message, { hostname: name }, { cause: error });
}

export function unknownCertificate(hostname: string, app: string): HibernautError {
  const shown = hostname.slice(0, 253);
  const message = `App ${app} has no certificate for ${shown}. See \`hibernaut certs list --app ${app}\`.`;
  return new HibernautError("not_found", message, { hostname: shown, app_name: app });
}
