/** What has no meaning on a server of one's own, with what does the same here. */
import { Refusal } from "../failure.ts";
import type { Routes } from "./table.ts";

type Method = Parameters<Routes>[0];

const MACHINE = "/apps/:app_name/machines/:machine_id";
const APP = "/apps/:app_name";

const MEMORY =
  "A machine's memory is that of its configuration: update `guest.memory_mb`, or suspend it, which frees all of it.";
const IPS =
  "Apps have no addresses of their own: the proxy answers for all of them, by their hostnames. `hibernaut hostnames add` gives an app another one.";
const KEYS = "There is no key management. `hibernaut secrets set` keeps what a program needs, encrypted.";
const TOKENS = "The platform signs no tokens for others. `hibernaut tokens create --app` makes one for itself.";
const CUSTOM = "Certificates come from an ACME authority. One of your own is served by a proxy in front.";

/** Routes that are refused, each with its sentence. */
export const REFUSED: readonly [method: Method, url: string, sentence: string][] = [
  ["GET", `${MACHINE}/memory`, MEMORY],
  ["PUT", `${MACHINE}/memory`, MEMORY],
  ["POST", `${MACHINE}/memory/reclaim`, MEMORY],
  ["POST", `${APP}/ip_assignments`, IPS],
  ["DELETE", `${APP}/ip_assignments/:ip`, IPS],
  ["GET", `${APP}/secretkeys`, KEYS],
  ["GET", `${APP}/secretkeys/:secret_name`, KEYS],
  ["POST", `${APP}/secretkeys/:secret_name`, KEYS],
  ["DELETE", `${APP}/secretkeys/:secret_name`, KEYS],
  ...["decrypt", "encrypt", "generate", "sign", "verify"].map(
    (action) => ["POST", `${APP}/secretkeys/:secret_name/${action}`, KEYS] as [Method, string, string],
  ),
  ["POST", `${APP}/deploy_token`, TOKENS],
  ["POST", "/tokens/oidc", TOKENS],
  ["POST", "/tokens/kms", TOKENS],
  ["GET", "/tokens/current", "What a token may do, `hibernaut tokens list` shows."],
  ["POST", "/platform/placements", "There is one region. `hibernaut status` shows what room the host has."],
  ["POST", `${APP}/certificates/custom`, CUSTOM],
  ["DELETE", `${APP}/certificates/:hostname/custom`, CUSTOM],
];

export function refusedRoutes(route: Routes): void {
  // Clients ask for it before they deploy, and there are none.
  route("GET", `${APP}/ip_assignments`, {}, async () => ({ ips: [] }));
  for (const [method, url, sentence] of REFUSED)
    route(method, url, {}, async () => {
      throw new Refusal(501, sentence, "not_implemented");
    });
}
