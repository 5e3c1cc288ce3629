/** Orders a certificate and follows the order to its end. */
import { setTimeout as delay } from "node:timers/promises";
import type { Certificate } from "@hibernaut/client";
import type { Option, OptionValues } from "./command.ts";
import type { Context } from "./context.ts";
import { WAIT_TIMEOUT_S } from "./defaults.ts";
import { CliError } from "./failure.ts";
import { localTime } from "./local-time.ts";
import type { WAITING } from "./waiting.ts";

/** How often the platform is asked, in milliseconds: an order takes seconds. */
const POLL_MS = 500;

export const AGREE_TERMS = {
  flags: "--agree-terms",
  description: "agree to the terms of service of the certificate authority; needed once",
} as const satisfies Option;

type AddOptions = OptionValues<[typeof AGREE_TERMS, ...typeof WAITING]>;

/** Adds a certificate and waits until it was issued. Fails when the order does, or when the time is over. */
export async function addAndWait(
  context: Context,
  hostname: string,
  { agreeTerms = false, wait = true, waitTimeout = WAIT_TIMEOUT_S }: AddOptions,
): Promise<Certificate> {
  const client = await context.client();
  const added = await client.addCertificate(context.app, { hostname, agree_to_terms: agreeTerms });
  if (!wait || isDone(added)) return checked(context, added);
  const ended = async () => {
    const deadline = Date.now() + waitTimeout * 1000;
    for (let certificate = added; ; certificate = await client.getCertificate(context.app, added.hostname)) {
      if (isDone(certificate)) return certificate;
      if (Date.now() >= deadline) throw tooLate(context, added.hostname, waitTimeout);
      await delay(POLL_MS);
    }
  };
  return checked(context, await context.progress(`Getting a certificate for ${added.hostname}`, ended()));
}

/** Returns what there is to say about a certificate that was added. */
export function certificateText({ hostname, status, not_after: until, renew_at: renewal }: Certificate): string {
  if (until === null || renewal === null) return `The certificate for ${hostname} is being ordered.`;
  const served = `${hostname} has a certificate until ${localTime(until)}`;
  return status === "valid" ? `${served}, and its renewal is due ${localTime(renewal)}.` : `${served} (${status}).`;
}

function isDone({ status, failure }: Certificate): boolean {
  return status === "valid" || status === "unused" || failure !== null;
}

function checked({ app }: Context, certificate: Certificate): Certificate {
  const { hostname, failure } = certificate;
  if (failure === null) return certificate;
  const next = `The next attempt is due ${localTime(failure.next_at)}. See what is missing: hibernaut certs check ${hostname} --app ${app}`;
  throw new CliError("failed_precondition", `There is no new certificate for ${hostname}: ${failure.reason} ${next}`);
}

function tooLate({ app }: Context, hostname: string, waitedS: number): CliError {
  const next = `It is still being ordered. See \`hibernaut certs list --app ${app}\`, or allow more time with --wait-timeout.`;
  return new CliError("deadline_exceeded", `There is no certificate for ${hostname} after ${waitedS} s. ${next}`);
}
