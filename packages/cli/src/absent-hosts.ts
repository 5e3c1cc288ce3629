/** What a command must not decide while hosts of a cluster cannot be asked. */
import { CliError } from "./failure.ts";

/**
 * Throws `failed_precondition` if hosts did not answer.
 *
 * @param what what they have or may have, as in "may have volumes of shop"
 */
export function requireAllHosts(missing: readonly string[], what: string): void {
  if (missing.length === 0) return;
  const hosts = missing.length === 1 ? "Host" : "Hosts";
  throw new CliError(
    "failed_precondition",
    `Nothing was changed. ${hosts} ${missing.join(" and ")} did not answer, and ${what}. Try again when all hosts answer; \`hibernaut cluster status\` shows them.`,
  );
}
