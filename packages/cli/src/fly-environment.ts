/** What programs that use Fly's clients have to know to find a platform. Pure. */
import { CliError } from "./failure.ts";

/** The platform's own settings, as far as they matter here. */
interface FlySettings {
  flyListen?: { host: string; port: number } | undefined;
  apiTlsCert?: string | undefined;
}

/** Variables, by the names that Fly's clients read. */
interface FlyEnvironment {
  /** The Machines API, for flyctl and fly-go. */
  FLY_FLAPS_BASE_URL: string;
  /** GraphQL, for the same. */
  FLY_API_BASE_URL: string;
  /** What flyctl asks Fly's website. */
  FLY_UIEX_BASE_URL: string;
  /** Off: flyctl sends a record of each command to Fly, with the token that it has. */
  FLY_SEND_METRICS: "0";
  /** This host: some of its commands send traces, with the token, to a host of Fly's. */
  FLY_TRACE_COLLECTOR_URL: "127.0.0.1";
  /** The Machines API, for programs that follow Fly's documents. */
  FLY_API_HOSTNAME: string;
  FLY_APP?: string;
}

/** Addresses that mean all of the host's. Nobody can connect to them. */
const WILDCARDS = new Set(["0.0.0.0", "::"]);
const EXAMPLE = "127.0.0.1:4281";

/** Throws `failed_precondition` when the port is off, or when nobody knows it. */
export function flyEnvironment({ flyListen: at, apiTlsCert: cert }: FlySettings, app?: string): FlyEnvironment {
  if (at === undefined)
    throw new CliError(
      "failed_precondition",
      `HIBERNAUT_FLY_LISTEN is not set here. Run this with the environment that \`hibernaut serve\` has. If it is not set there either, set it (for example ${EXAMPLE}) and restart the platform.`,
    );
  if (at.port === 0)
    throw new CliError(
      "failed_precondition",
      `Fly's clients find another port after each start of the platform. Set HIBERNAUT_FLY_LISTEN to a port, for example ${EXAMPLE}.`,
    );
  const host = WILDCARDS.has(at.host) ? "127.0.0.1" : at.host;
  const url = `${cert === undefined ? "http" : "https"}://${host.includes(":") ? `[${host}]` : host}:${at.port}`;
  return {
    FLY_FLAPS_BASE_URL: url,
    FLY_API_BASE_URL: url,
    FLY_UIEX_BASE_URL: url,
    FLY_API_HOSTNAME: url,
    FLY_SEND_METRICS: "0",
    FLY_TRACE_COLLECTOR_URL: "127.0.0.1",
    ...(app !== undefined && { FLY_APP: app }),
  };
}
