/** What becomes of a health check, which in a compose file is a program, and here a connection or a request. Pure. */
import type { CheckConfig } from "@hibernaut/client";
import type { Findings } from "./findings.ts";
import { isMapping, secondsOf, textOf, textsOf, type Value } from "./values.ts";

/** Where a program looks: with a scheme, or after `curl` or `wget`, which need none. */
const HOST = String.raw`(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])(?::(\d{1,5}))?(\/[^\s"'|;&)]*)?`;
const URL_IN_COMMAND = new RegExp(String.raw`\b(https?):\/\/${HOST}`);
const BARE_IN_COMMAND = new RegExp(String.raw`\b(?:curl|wget)\b[^|;&]*\s()${HOST}`);
/** A check that nobody wrote by hand could take the expressions above minutes. In characters. */
const MOST_COMMAND = 4096;
/** Within the bounds of the platform, in seconds. */
const BOUNDS = { least: 1, most: 3600 };
/** A check that fails now and then, and has some time to: compose asks three times, half a minute apart. */
const DEFAULT_INTERVAL_S = 15;

/**
 * Returns the check that comes closest: the request that the program makes, or else a connection to the first port. Undefined
 * without one, which means that the service is ready once its ports answer.
 *
 * @param ports where the service listens
 */
export function checkOf(
  value: Value | undefined,
  ports: readonly number[],
  path: string,
  findings: Findings,
): CheckConfig | undefined {
  if (!isMapping(value) || value.disable === true) return undefined;
  const words = textsOf(value.test);
  if (words.length === 0 || words[0] === "NONE") return undefined;
  const command = words.join(" ").slice(0, MOST_COMMAND);
  const [found, scheme, port, where] = URL_IN_COMMAND.exec(command) ?? BARE_IN_COMMAND.exec(command) ?? [];
  const [first] = ports;
  const times = timesOf(value);
  if (found !== undefined && scheme !== "https") {
    const asked = port === undefined ? 80 : Number(port);
    findings.note(path, `Becomes an HTTP check of port ${asked}, which passes on any status from 200 to 299.`);
    return { type: "http", port: asked, path: where ?? "/", ...times };
  }
  if (first === undefined) {
    return findings.warn(
      path,
      "Left out: a check here is a request or a connection, and the service has no port. It counts as healthy once it runs.",
    );
  }
  findings.note(
    path,
    `\`${command.slice(0, 60)}\` does not run here. It becomes a check that port ${first} takes connections.`,
  );
  return { type: "tcp", port: first, ...times };
}

function timesOf(value: { [key: string]: Value }): Pick<CheckConfig, "interval" | "timeout" | "grace_period"> {
  const { interval, timeout, start_period: start } = value;
  return {
    interval: written(interval) ?? `${DEFAULT_INTERVAL_S}s`,
    ...(written(timeout) !== undefined && { timeout: written(timeout) as string }),
    ...(written(start) !== undefined && { grace_period: written(start) as string }),
  };
}

function written(value: Value | undefined): string | undefined {
  const seconds = secondsOf(textOf(value));
  if (seconds === undefined) return undefined;
  return `${Math.min(BOUNDS.most, Math.max(BOUNDS.least, Math.round(seconds)))}s`;
}
