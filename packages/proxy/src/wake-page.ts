/** Which requests get the wake page instead of waiting for a cold start: pure rules. */
import { isUp } from "./balance.ts";
import type { RequestHead } from "./contract.ts";
import type { RoutedMachine } from "./routed-machine.ts";

/** States that lead to a cold start if the machine has no snapshot. One that is `suspending` only has to turn back. */
const BEFORE_START: readonly string[] = ["suspended", "stopped", "created", "stopping", "restarting", "updating"];

/**
 * Whether a person looks at the answer, in a browser's window: a page that reloads itself is of no use to programs, to
 * scripts in a page, and in a frame, whose page may have been told what to expect there.
 */
export function isVisit({ method, fields }: Pick<RequestHead, "method" | "fields">): boolean {
  if (method !== "GET") return false;
  let html = false;
  for (const { key, value } of fields) {
    if (key === "accept") html ||= acceptsHtml(value);
    // All browsers since 2023 send these two to HTTPS and to localhost, and older ones do not send them at all.
    else if (key === "sec-fetch-mode" && value !== "navigate") return false;
    else if (key === "sec-fetch-dest" && value !== "document") return false;
    // Libraries for scripts have sent this since before browsers said it themselves.
    else if (key === "x-requested-with") return false;
    // A request with a body, or for a part of a file, cannot be repeated by a reload.
    else if (key === "content-length" || key === "transfer-encoding" || key === "range" || key === "upgrade")
      return false;
  }
  return html;
}

/** `text/html` by name, unless it is said to be unwanted: programs accept everything without knowing what to do with it. */
function acceptsHtml(accept: string): boolean {
  return accept.split(",").some((range) => {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    return type === "text/html" && !parameters.some((parameter) => /^q\s*=\s*0(\.0*)?$/.test(parameter));
  });
}

/**
 * Whether the first of the machines that could take a request has to cold start, and its service wants the page. A
 * machine that is running, if only at its limit, or that resumes, is worth the wait.
 *
 * @param machines those that the request may be given to, of which none can take it now
 */
export function waitsForColdStart(machines: readonly RoutedMachine[]): boolean {
  const coming = machines.filter((machine) => machine.wakeRequested || isComing(machine));
  // A page that leads to the next page would reload forever, and nobody would ever see why.
  if (machines.some(({ endedSincePage }) => endedSincePage)) return false;
  if (coming.length === 0 || !coming.every(({ policy, row }) => policy.wakePage && row.cold === true)) return false;
  return coming.every(({ state }) => state === "starting" || BEFORE_START.includes(state)) && !machines.some(isUp);
}

function isComing({ state, crashing }: RoutedMachine): boolean {
  return !crashing && (state === "starting" || state === "restarting" || state === "updating");
}
