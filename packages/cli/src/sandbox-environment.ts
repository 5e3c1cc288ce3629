/** What programs that use E2B's clients have to know to find the sandboxes of a platform. Pure. */
import { CliError } from "./failure.ts";

/** The platform's own settings, as far as they matter here. */
interface SandboxSettings {
  sandboxListen?: { host: string; port: number } | undefined;
  /** With the port at which clients reach it, unless that is 443. */
  sandboxDomain: string;
  sandboxTlsCert?: string | undefined;
}

/** Variables, by the names that E2B's clients read. */
interface SandboxEnvironment {
  E2B_API_URL: string;
  /** Only without TLS: clients would speak HTTPS to the names of sandboxes otherwise. */
  E2B_SANDBOX_URL?: string;
  /** Likewise: files of volumes. */
  E2B_VOLUME_API_URL?: string;
  E2B_DOMAIN: string;
}

/** Addresses that mean all of the host's. Nobody can connect to them. */
const WILDCARDS = new Set(["0.0.0.0", "::"]);
const EXAMPLE = "127.0.0.1:7070";

/** Throws `failed_precondition` when sandboxes are off, or when nobody knows their port. */
export function sandboxEnvironment({
  sandboxListen: at,
  sandboxDomain: domain,
  sandboxTlsCert: cert,
}: SandboxSettings): SandboxEnvironment {
  if (at === undefined)
    throw new CliError(
      "failed_precondition",
      `Sandboxes are off: set HIBERNAUT_SANDBOX_LISTEN (for example ${EXAMPLE}) and restart the platform.`,
    );
  if (cert !== undefined) return { E2B_API_URL: `https://api.${domain}`, E2B_DOMAIN: domain };
  if (at.port === 0)
    throw new CliError(
      "failed_precondition",
      `Sandboxes have another port after each start of the platform. Set HIBERNAUT_SANDBOX_LISTEN to a port, for example ${EXAMPLE}.`,
    );
  const url = `http://${placeOf(at, domain)}`;
  return { E2B_API_URL: url, E2B_SANDBOX_URL: url, E2B_VOLUME_API_URL: url, E2B_DOMAIN: domain };
}

/** The host and port that clients connect to. */
function placeOf({ host, port }: { host: string; port: number }, domain: string): string {
  if (WILDCARDS.has(host)) return /:\d+$/.test(domain) ? domain : `${domain}:${port}`;
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Lines for a shell that set the variables. */
export function exportLines(environment: object): string[] {
  return Object.entries(environment).map(([name, value]) => `export ${name}=${quoted(String(value))}`);
}

/** A shell would take the brackets of an IPv6 address for a pattern. */
function quoted(value: string): string {
  return /^[\w.:/-]+$/.test(value) ? value : `'${value}'`;
}
