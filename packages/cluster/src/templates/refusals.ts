/** Why a template does not come to a host, in sentences. `template_missing_on` says that no machine was made there. */
import { type ErrorCode, HibernautError } from "@hibernaut/domain/errors";
import { messageOf, withoutPeriod } from "@hibernaut/lib/text";
import type { SharedTemplate } from "../keys.ts";

type Which = Pick<SharedTemplate, "id" | "name">;

/** The host could not wake a machine with the template's memory. */
export function unfitOn({ id, name }: Which, host: string, reason: string): HibernautError {
  const message = `Template ${name} (${id}) cannot be used on host ${host}: ${reason}. Choose another host, or make a template there.`;
  return missing("failed_precondition", message, { id, host, reason });
}

/** No host that has it could be asked, or none has sent what it is. */
export function notSent({ id, name }: Which, host: string, reasons: readonly string[]): HibernautError {
  const message = `Template ${name} (${id}) did not get to host ${host}: ${reasons.join("; ")}. Nothing was made. Try again, which continues the copy; \`hibernaut cluster status\` shows which hosts are up.`;
  return missing("host_unreachable", message, { id, host });
}

/** The disk of this host cannot take it. */
export function notStored({ id, name }: Which, host: string, error: unknown): HibernautError {
  const message = `Host ${host} cannot store template ${name} (${id}): ${withoutPeriod(messageOf(error))}. Look at its disk, or choose another host.`;
  return missing("unavailable", message, { id, host }, error);
}

/** What keeps a template from this host and has a sentence of its own. */
export function keptFrom({ id }: Which, host: string, error: HibernautError): HibernautError {
  return missing(error.code, error.message, { ...error.details, id, host }, error);
}

function missing(
  code: ErrorCode,
  message: string,
  { id, host, ...details }: { id: string; host: string } & Record<string, unknown>,
  cause?: unknown,
): HibernautError {
  return new HibernautError(code, message, { ...details, template: id, host, template_missing_on: host }, { cause });
}
