/**
 * Who may do what, written from the documentation and not from the code: the test compares the two. `own`: the scopes with
 * which a token that is limited to the app of the path gets in. `platform`: those of a token for all apps, where the path
 * names no app; `limited` says whether a limited token with the scope gets in there.
 */

export type Word = "read" | "exec" | "deploy" | "admin";

const READ: readonly Word[] = ["read", "exec", "deploy", "admin"];
const EXEC: readonly Word[] = ["exec", "admin"];
const DEPLOY: readonly Word[] = ["deploy", "admin"];
const ADMIN: readonly Word[] = ["admin"];
const START: readonly Word[] = ["exec", "deploy", "admin"];

interface Row {
  scopes: readonly Word[];
  /** Whether a limited token with one of the scopes gets in. Where the path names an app, it does unless this is false. */
  limited?: boolean;
}

const A = "/v1/apps/{app_name}";
const M = `${A}/machines/{machine_id}`;
const V = `${A}/volumes/{volume_id}`;
const W = "/v1/webhooks/{webhook_id}";
const B = "/v1/platform/backups/targets";

/** By method and path, as the OpenAPI document has them. */
export const SCOPE_TABLE: Readonly<Record<string, Row | "public" | "machines only">> = {
  "GET /v1/health": "public",
  "GET /metrics": { scopes: READ, limited: false },
  "GET /v1/apps": { scopes: READ, limited: true },
  "POST /v1/apps": { scopes: DEPLOY, limited: false },
  [`GET ${A}`]: { scopes: READ },
  [`PATCH ${A}`]: { scopes: DEPLOY },
  [`DELETE ${A}`]: { scopes: ADMIN },
  // A token that is limited to an app reaches no preview of it, and one that is limited to previews reaches nothing else.
  [`GET ${A}/previews`]: { scopes: READ, limited: false },
  [`PUT ${A}/previews/{preview}`]: { scopes: DEPLOY, limited: false },
  [`DELETE ${A}/previews/{preview}`]: { scopes: DEPLOY, limited: false },
  "GET /v1/machines": { scopes: READ, limited: true },
  [`GET ${A}/machines`]: { scopes: READ },
  [`POST ${A}/machines`]: { scopes: DEPLOY },
  [`GET ${M}`]: { scopes: READ },
  [`POST ${M}`]: { scopes: DEPLOY },
  [`DELETE ${M}`]: { scopes: DEPLOY },
  [`POST ${M}/start`]: { scopes: START },
  [`POST ${M}/stop`]: { scopes: DEPLOY },
  [`POST ${M}/suspend`]: { scopes: DEPLOY },
  [`POST ${M}/restart`]: { scopes: DEPLOY },
  [`PUT ${M}/egress`]: { scopes: DEPLOY },
  [`DELETE ${M}/egress`]: { scopes: DEPLOY },
  [`GET ${M}/ps`]: { scopes: EXEC },
  [`POST ${M}/signal`]: { scopes: START },
  [`POST ${M}/lease`]: { scopes: DEPLOY },
  [`GET ${M}/lease`]: { scopes: READ },
  [`DELETE ${M}/lease`]: { scopes: DEPLOY },
  [`GET ${M}/metadata`]: { scopes: READ },
  [`PATCH ${M}/metadata`]: { scopes: DEPLOY },
  [`POST ${M}/metadata/{key}`]: { scopes: DEPLOY },
  [`DELETE ${M}/metadata/{key}`]: { scopes: DEPLOY },
  [`POST ${M}/cordon`]: { scopes: DEPLOY },
  [`POST ${M}/uncordon`]: { scopes: DEPLOY },
  [`POST ${M}/fork`]: { scopes: DEPLOY },
  [`POST ${M}/restore`]: { scopes: DEPLOY },
  [`GET ${M}/usage`]: { scopes: READ },
  [`GET ${M}/wait`]: { scopes: READ },
  [`GET ${M}/events`]: { scopes: READ },
  [`GET ${M}/logs`]: { scopes: READ },
  [`GET ${M}/activity`]: { scopes: READ },
  [`GET ${A}/logs`]: { scopes: READ },
  [`POST ${M}/exec`]: { scopes: EXEC },
  [`GET ${M}/exec`]: { scopes: EXEC },
  [`GET ${M}/forward`]: { scopes: EXEC },
  [`GET ${M}/archive`]: { scopes: EXEC },
  [`PUT ${M}/archive`]: { scopes: EXEC },
  [`GET ${M}/archive/stat`]: { scopes: EXEC },
  [`GET ${M}/files`]: { scopes: EXEC },
  [`DELETE ${M}/files`]: { scopes: EXEC },
  [`PUT ${M}/files/directory`]: { scopes: EXEC },
  [`GET ${A}/templates`]: { scopes: READ },
  [`POST ${A}/templates`]: { scopes: DEPLOY },
  [`GET ${A}/templates/{template}`]: { scopes: READ },
  [`POST ${A}/templates/{template}`]: { scopes: DEPLOY },
  [`DELETE ${A}/templates/{template}`]: { scopes: DEPLOY },
  [`GET ${A}/hostnames`]: { scopes: READ },
  [`POST ${A}/hostnames`]: { scopes: DEPLOY },
  [`DELETE ${A}/hostnames/{hostname}`]: { scopes: DEPLOY },
  [`GET ${A}/certificates`]: { scopes: READ },
  [`POST ${A}/certificates`]: { scopes: DEPLOY },
  [`GET ${A}/certificates/{hostname}`]: { scopes: READ },
  [`DELETE ${A}/certificates/{hostname}`]: { scopes: DEPLOY },
  [`GET ${A}/certificates/{hostname}/check`]: { scopes: READ },
  [`GET ${A}/quota`]: { scopes: READ },
  // A limited token is held to the quota, so it does not change it.
  [`PUT ${A}/quota`]: { scopes: ADMIN, limited: false },
  [`GET ${A}/releases`]: { scopes: READ },
  [`POST ${A}/releases`]: { scopes: DEPLOY },
  [`POST ${A}/releases/{version}`]: { scopes: DEPLOY },
  [`POST ${A}/releases/{version}/command`]: { scopes: DEPLOY },
  [`GET ${A}/secrets`]: { scopes: READ },
  [`POST ${A}/secrets`]: { scopes: DEPLOY },
  [`DELETE ${A}/secrets/{secret_name}`]: { scopes: DEPLOY },
  [`GET ${A}/volumes`]: { scopes: READ },
  [`POST ${A}/volumes`]: { scopes: DEPLOY },
  [`GET ${V}`]: { scopes: READ },
  [`PUT ${V}`]: { scopes: ADMIN },
  [`DELETE ${V}`]: { scopes: ADMIN },
  [`PUT ${V}/extend`]: { scopes: DEPLOY },
  [`GET ${V}/snapshots`]: { scopes: READ },
  [`POST ${V}/snapshots`]: { scopes: DEPLOY },
  [`DELETE ${V}/snapshots/{snapshot_id}`]: { scopes: ADMIN },
  "GET /v1/images": { scopes: READ, limited: true },
  "DELETE /v1/images": { scopes: ADMIN, limited: false },
  "POST /v1/images/pull": { scopes: DEPLOY, limited: true },
  "GET /v1/images/uploads": { scopes: READ, limited: false },
  "POST /v1/images/uploads": { scopes: DEPLOY, limited: true },
  "DELETE /v1/images/uploads/{digest}": { scopes: DEPLOY, limited: false },
  "PATCH /v1/images/blobs/{digest}": { scopes: DEPLOY, limited: true },
  "GET /v1/registries": { scopes: READ, limited: false },
  "GET /v1/registries/{host}": { scopes: READ, limited: false },
  "PUT /v1/registries/{host}": { scopes: ADMIN, limited: false },
  "DELETE /v1/registries/{host}": { scopes: ADMIN, limited: false },
  "POST /v1/session": "public",
  "GET /v1/session": { scopes: READ, limited: true },
  "DELETE /v1/session": { scopes: READ, limited: true },
  "GET /v1/tokens": { scopes: ADMIN, limited: false },
  "POST /v1/tokens": { scopes: ADMIN, limited: false },
  "DELETE /v1/tokens/{token_id}": { scopes: ADMIN, limited: false },
  "POST /v1/tokens/{token_id}/rotate": { scopes: ADMIN, limited: false },
  "GET /v1/stream": { scopes: READ, limited: true },
  "GET /v1/webhooks": { scopes: DEPLOY, limited: true },
  "POST /v1/webhooks": { scopes: DEPLOY, limited: true },
  [`GET ${W}`]: { scopes: DEPLOY, limited: true },
  [`PATCH ${W}`]: { scopes: DEPLOY, limited: true },
  [`DELETE ${W}`]: { scopes: DEPLOY, limited: true },
  [`POST ${W}/test`]: { scopes: DEPLOY, limited: true },
  [`POST ${W}/rotate`]: { scopes: DEPLOY, limited: true },
  [`GET ${W}/deliveries`]: { scopes: DEPLOY, limited: true },
  "GET /v1/usage": { scopes: READ, limited: true },
  "GET /v1/audit": { scopes: ADMIN, limited: false },
  "GET /v1/timeline": { scopes: READ, limited: true },
  "GET /v1/wakes": { scopes: READ, limited: true },
  "GET /v1/platform/host": { scopes: ADMIN, limited: false },
  "GET /v1/platform/doctor": { scopes: ADMIN, limited: false },
  "GET /v1/cluster": { scopes: READ, limited: false },
  "POST /v1/cluster/tokens": { scopes: ADMIN, limited: false },
  "DELETE /v1/cluster/disputed/{machine_id}": { scopes: ADMIN, limited: false },
  "DELETE /v1/cluster/hosts/{host}": { scopes: ADMIN, limited: false },
  "POST /v1/cluster/hosts/{host}/drain": { scopes: ADMIN, limited: false },
  "DELETE /v1/cluster/hosts/{host}/drain": { scopes: ADMIN, limited: false },
  "POST /v1/cluster/hosts/{host}/evacuate": { scopes: ADMIN, limited: false },
  [`POST ${M}/move`]: { scopes: ADMIN },
  "GET /v1/platform/drain": { scopes: READ, limited: false },
  "POST /v1/platform/drain": { scopes: ADMIN, limited: false },
  "DELETE /v1/platform/drain": { scopes: ADMIN, limited: false },
  "GET /v1/platform/backup": { scopes: READ, limited: false },
  "POST /v1/platform/backup": { scopes: ADMIN, limited: false },
  [`GET ${B}`]: { scopes: READ, limited: false },
  [`POST ${B}`]: { scopes: ADMIN, limited: false },
  [`GET ${B}/{target}`]: { scopes: READ, limited: false },
  [`PATCH ${B}/{target}`]: { scopes: ADMIN, limited: false },
  [`DELETE ${B}/{target}`]: { scopes: ADMIN, limited: false },
  [`GET ${B}/{target}/sets`]: { scopes: READ, limited: false },
  [`POST ${B}/{target}/run`]: { scopes: ADMIN, limited: false },
  [`DELETE ${B}/{target}/run`]: { scopes: ADMIN, limited: false },
  [`POST ${B}/{target}/check`]: { scopes: ADMIN, limited: false },
  [`POST ${B}/{target}/restore`]: { scopes: ADMIN, limited: false },
  [`POST ${B}/{target}/drill`]: { scopes: ADMIN, limited: false },
  "GET /v1/platform/regions": { scopes: READ, limited: true },
  "PUT /v1/keepalive": "machines only",
  "DELETE /v1/keepalive": "machines only",
  "PUT /v1/wake": "machines only",
  "DELETE /v1/wake": "machines only",
  "POST /v1/prepared": "machines only",
  "GET /v1/events": "machines only",
  "POST /v1/events/{event_id}/ready": "machines only",
};

/** What the table says of one request. */
export type Verdict = "in" | "hidden" | "refused";

/** Returns whether a token gets in; `hidden` is 404, `refused` 403. `app` is that of the path, if it names one. */
export function verdictOf(
  route: string,
  token: { scopes: readonly Word[]; apps: readonly string[] | null },
  app: string | undefined,
): Verdict {
  const row = SCOPE_TABLE[route];
  if (row === undefined) throw new Error(`the table has no ${route}`);
  if (row === "public") return "in";
  if (row === "machines only") return "refused";
  if (app !== undefined && token.apps !== null && !token.apps.includes(app)) return "hidden";
  if (!row.scopes.some((scope) => token.scopes.includes(scope))) return "refused";
  const { limited = app !== undefined } = row;
  return token.apps !== null && !limited ? "refused" : "in";
}
